# SPDX-License-Identifier: Apache-2.0
"""The database of the service, on SQLite, PostgreSQL and MariaDB."""

from treeclaim.store.database.systems import DatabaseSettings
from treeclaim.store.store import Store

__all__ = ["DatabaseSettings", "Store"]
