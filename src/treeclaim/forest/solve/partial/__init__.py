# SPDX-License-Identifier: Apache-2.0
"""Partial candidates in blocks, the combination of two blocks, and the rules of a combination.

This package imports nothing else of the search.
"""
