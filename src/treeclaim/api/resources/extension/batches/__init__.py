# SPDX-License-Identifier: Apache-2.0
"""Applying in bulk (contract page 99, section 8)."""
