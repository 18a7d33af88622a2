# SPDX-License-Identifier: Apache-2.0
"""Partial candidates in blocks, how two blocks are combined, and the rules that a combination keeps.

Knows nothing else of the search.
"""
