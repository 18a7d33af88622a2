# SPDX-License-Identifier: Apache-2.0
"""Totals (contract page 99, section 3)."""
