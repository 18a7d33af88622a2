# SPDX-License-Identifier: Apache-2.0
"""What is read in one query over many rows.

Knows the schema and the database.
"""
