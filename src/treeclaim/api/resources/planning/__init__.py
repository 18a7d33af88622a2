# SPDX-License-Identifier: Apache-2.0
"""Assumptions and plans (contract page 101)."""
