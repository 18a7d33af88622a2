# SPDX-License-Identifier: Apache-2.0
"""An empty database on each of the three systems."""

from tests.store.conftest import database_url, store

__all__ = ["database_url", "store"]
