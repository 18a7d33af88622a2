# SPDX-License-Identifier: Apache-2.0
"""Usages (contract page 80)."""
