# SPDX-License-Identifier: Apache-2.0
"""Checks whether an anchor can have any candidate, before candidates are combined.

This package imports the domains and the packages below them.
"""
