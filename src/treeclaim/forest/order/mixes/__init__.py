# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of each request of a mix that fit into a tree (contract page 101, section 3).

Knows the search, but nothing of scores.
"""
