# SPDX-License-Identifier: Apache-2.0
"""The providers for each slot of a candidate, and their anchors.

This package imports `table` and `question`.
"""
