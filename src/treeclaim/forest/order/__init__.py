# SPDX-License-Identifier: Apache-2.0
"""Candidates in the order of their scores (contract page 98, section 2).

This package imports the search, divided amounts, and the packages below them.
"""
