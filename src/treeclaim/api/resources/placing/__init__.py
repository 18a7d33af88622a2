# SPDX-License-Identifier: Apache-2.0
"""Alternatives, placements and capacity (contract page 98, sections 3 to 5)."""
