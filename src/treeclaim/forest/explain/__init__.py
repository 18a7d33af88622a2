# SPDX-License-Identifier: Apache-2.0
"""Explains searches without candidates by searching with fewer constraints.

This package may import all other packages of the Forest.
"""
