# SPDX-License-Identifier: Apache-2.0
"""Aggregates of a provider (contract page 40)."""
