# SPDX-License-Identifier: Apache-2.0
"""What the words of Treeclaim mean: values and rules, with no database and no HTTP."""
