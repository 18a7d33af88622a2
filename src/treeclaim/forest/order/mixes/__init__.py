# SPDX-License-Identifier: Apache-2.0
"""Counts of the requests of a mix in trees (contract page 101, section 3).

This package imports the search, but no scores.
"""
