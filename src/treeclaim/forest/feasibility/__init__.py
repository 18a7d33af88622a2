# SPDX-License-Identifier: Apache-2.0
"""Checks whether an anchor can have any candidate, before candidates are combined.

Knows the domains and what is below them.
"""
