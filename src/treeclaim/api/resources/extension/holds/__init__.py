# SPDX-License-Identifier: Apache-2.0
"""Holds (contract page 100, section 1)."""
