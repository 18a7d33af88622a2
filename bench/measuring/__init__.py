# SPDX-License-Identifier: Apache-2.0
"""Measurements, one module for each kind of figure."""
