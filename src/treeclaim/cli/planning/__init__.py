# SPDX-License-Identifier: Apache-2.0
"""Commands for mixes, plans and survival."""
