# SPDX-License-Identifier: Apache-2.0
"""Inventories (contract page 30)."""
