# SPDX-License-Identifier: Apache-2.0
"""The tables, and the revisions that create and migrate them.

Knows the database.
"""
