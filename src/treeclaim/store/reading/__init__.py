# SPDX-License-Identifier: Apache-2.0
"""Queries over many rows, each in one snapshot."""
