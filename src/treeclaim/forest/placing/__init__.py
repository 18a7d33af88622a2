# SPDX-License-Identifier: Apache-2.0
"""Placing consumers one after the other, and counting the consumers that fit (contract page 98).

This package may import all packages of the Forest except `explain` and `planning`.
"""
