# SPDX-License-Identifier: Apache-2.0
"""The providers that can take each slot of a candidate, and under which anchor.

This package imports `table` and `question`.
"""
