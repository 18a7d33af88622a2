# SPDX-License-Identifier: Apache-2.0
"""Allocation candidates and explanations (contract pages 90 and 97)."""
