# SPDX-License-Identifier: Apache-2.0
"""Texts of summaries, prepared for answers and kept until what they tell changes.

Knows the columns and their order, not the Forest.
"""
