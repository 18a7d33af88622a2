# SPDX-License-Identifier: Apache-2.0
"""Checks whether a database can be taken over, and data migrations that complete its rows.

Knows the operations and what is below them.
"""
