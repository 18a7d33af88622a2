# SPDX-License-Identifier: Apache-2.0
"""A database on each of the three systems."""

from tests.store.conftest import database_kind, database_url, store

__all__ = ["database_kind", "database_url", "store"]
