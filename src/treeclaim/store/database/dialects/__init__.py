# SPDX-License-Identifier: Apache-2.0
"""What differs between SQLite, PostgreSQL and MariaDB: session settings and timeouts.

Knows timeouts only.
"""
