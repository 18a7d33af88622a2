# SPDX-License-Identifier: Apache-2.0
"""Amounts that are divided over several providers.

This package imports the search and the packages below it.
"""
