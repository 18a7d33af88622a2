# SPDX-License-Identifier: Apache-2.0
"""The change feed: what was committed, told to readers.

Knows the schema and the database.
"""
