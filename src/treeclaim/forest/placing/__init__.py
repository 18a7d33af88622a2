# SPDX-License-Identifier: Apache-2.0
"""Placing many consumers one after the other, and counting how many fit (contract page 98).

Knows everything else of the Forest.
"""
