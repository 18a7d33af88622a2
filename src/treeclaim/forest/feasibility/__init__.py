# SPDX-License-Identifier: Apache-2.0
"""Whether an anchor can have any candidate at all, before candidates are combined.

Knows the domains and what is below them.
"""
