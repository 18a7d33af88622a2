# SPDX-License-Identifier: Apache-2.0
"""Failures of a database: their kinds, outages in the log, and text that it cannot compare.

Knows dialects.
"""
