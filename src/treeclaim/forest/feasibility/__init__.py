# SPDX-License-Identifier: Apache-2.0
"""Excludes anchors that cannot have a candidate, before candidates are combined.

This package imports the domains and the packages below them.
"""
