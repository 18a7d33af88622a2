# SPDX-License-Identifier: Apache-2.0
"""Locks against the deletion of rows, which those who rely on the same row share."""

from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.dialects.systems import abilities_of
from treeclaim.store.database.transactions import ReadTransaction


def shared_if_possible(transaction: ReadTransaction, locking: sa.Select[Any]) -> sa.Select[Any]:
    """Return a query with shared locks as it is, or, where there are none, with exclusive ones."""
    if abilities_of(transaction.connection).shares_row_locks:
        return locking
    return locking.with_for_update()
