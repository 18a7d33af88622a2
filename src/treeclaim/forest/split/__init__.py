# SPDX-License-Identifier: Apache-2.0
"""Amounts that are divided over several providers.

Knows the search and what is below it.
"""
