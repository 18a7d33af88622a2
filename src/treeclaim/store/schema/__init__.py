# SPDX-License-Identifier: Apache-2.0
"""The tables, Placement's and our own, and how they are made and migrated.

Knows only how a database is reached.
"""
