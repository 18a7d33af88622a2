# SPDX-License-Identifier: Apache-2.0
"""Allocations (contract page 70)."""
