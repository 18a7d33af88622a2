# SPDX-License-Identifier: Apache-2.0
"""What one transaction writes; one module for each noun.

Knows what is read, the schema and the database.
"""
