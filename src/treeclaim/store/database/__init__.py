# SPDX-License-Identifier: Apache-2.0
"""The database connection: engines, transactions, dialects, and what errors mean.

Knows no table.
"""
