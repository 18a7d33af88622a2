# SPDX-License-Identifier: Apache-2.0
"""How a database is reached: engines, connections, transactions, and what differs between servers.

Knows no table.
"""
