# SPDX-License-Identifier: Apache-2.0
"""The durable truth: SQL on SQLite, PostgreSQL and MariaDB. One module for each noun."""

from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.store import Store

__all__ = ["DatabaseSettings", "Store"]
