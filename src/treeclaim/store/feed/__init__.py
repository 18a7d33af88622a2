# SPDX-License-Identifier: Apache-2.0
"""The change feed: which providers each commit changed, for readers that follow the database.

Knows the schema and the database.
"""
