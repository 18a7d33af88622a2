# SPDX-License-Identifier: Apache-2.0
"""Rows that a write locks before it decides anything, in the one order that all writes use."""
