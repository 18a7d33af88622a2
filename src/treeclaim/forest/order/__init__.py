# SPDX-License-Identifier: Apache-2.0
"""Candidates in the order of their scores (contract page 98, section 2).

Knows the search and what is below it, and divided amounts.
"""
