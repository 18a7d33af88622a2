# SPDX-License-Identifier: Apache-2.0
"""Placing many consumers one after the other, and counting how many fit (contract page 98).

This package may import all others of the Forest but `explain` and `planning`.
"""
