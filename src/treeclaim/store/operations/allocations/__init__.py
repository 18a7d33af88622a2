# SPDX-License-Identifier: Apache-2.0
"""Writes of consumers, with owners, allocations, holds and kept requests."""
