# SPDX-License-Identifier: Apache-2.0
"""Locks against the deletion of rows, which those who rely on the same row share."""

from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.dialects.systems import abilities_of
from treeclaim.store.database.transactions import ReadTransaction


class LockingQuery:
    """A query that locks the rows it finds, shared where the database can."""

    def __init__(self, query: sa.Select[Any]) -> None:
        self._shared = CompiledStatement(query.with_for_update(read=True, key_share=True))
        self._exclusive = CompiledStatement(query.with_for_update())

    def on(self, transaction: ReadTransaction) -> CompiledStatement:
        """Return the statement for the database of a transaction."""
        can_share = abilities_of(transaction.connection).shares_row_locks
        return self._shared if can_share else self._exclusive
