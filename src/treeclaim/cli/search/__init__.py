# SPDX-License-Identifier: Apache-2.0
"""Commands that search for candidates."""
