# SPDX-License-Identifier: Apache-2.0
"""Allocations in bulk (contract page 99, section 2)."""
