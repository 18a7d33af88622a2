# SPDX-License-Identifier: Apache-2.0
"""Counts of the consumers of each request of a mix that fit into a tree (contract page 101, section 3).

This package imports the search, and none of the scores.
"""
