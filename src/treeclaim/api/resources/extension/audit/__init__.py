# SPDX-License-Identifier: Apache-2.0
"""Audit and repairs (contract page 99, section 5)."""
