# SPDX-License-Identifier: Apache-2.0
"""Differences of SQLite, PostgreSQL and MariaDB: session settings and timeouts.

Knows timeouts only.
"""
