# SPDX-License-Identifier: Apache-2.0
"""Writes of claims: consumers, their owners and their allocations, one at a time or in groups."""
