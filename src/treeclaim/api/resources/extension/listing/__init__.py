# SPDX-License-Identifier: Apache-2.0
"""Providers in bulk (contract page 99, section 1)."""
