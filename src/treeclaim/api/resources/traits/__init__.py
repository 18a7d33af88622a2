# SPDX-License-Identifier: Apache-2.0
"""Traits (contract page 50)."""
