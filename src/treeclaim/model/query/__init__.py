# SPDX-License-Identifier: Apache-2.0
"""Queries for allocation candidates: their parameters, and the parsers of their values."""
