# SPDX-License-Identifier: Apache-2.0
"""Finds inconsistent rows, and repairs them (contract page 99, section 5)."""
