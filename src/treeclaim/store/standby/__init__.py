# SPDX-License-Identifier: Apache-2.0
"""Reads from a standby of the database, where it has all that the primary has (decision 0030)."""
