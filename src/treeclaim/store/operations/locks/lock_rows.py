# SPDX-License-Identifier: Apache-2.0
"""Lock rows: locks between the nodes of a Galera cluster.

A row lock holds on one node only. Transactions of two nodes conflict only if both write the same row:
the second commit fails, and its transaction runs again. Claims and inventories write the generations
of their providers, so they always conflict. A transaction that relies on a row without a write to it
inserts a lock row named after this row, and deletes it again. Of two such transactions, the second one
can commit only if it has read the writes of the first one. On one node, transactions that rely on the
same row share a lock against its deletion: `share_row_locks`.
"""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.systems import is_galera
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.schema.tables import feed

TREE = "tree"
"""The shape of the tree below a root."""

PARTS = "parts"
"""The associations of a provider, where its generation is not raised."""

CLASS = "class"
"""The existence of a resource class."""

AGGREGATE = "aggregate"
"""The existence of an aggregate."""

HOLD = "hold"
"""The terms of a hold and the draws from it; named after the row of its consumer."""

USE = "use"
"""The usage of a provider by claims that consume its inventories without raising its generation."""

_NO_STREAM = 0
"""No stream has this id, so readers of the feed never see a lock row."""

_INSERT = sa.insert(feed)
_DELETE = sa.delete(feed).where(
    feed.c.stream_id == _NO_STREAM,
    feed.c.kind == sa.bindparam("lock_kind"),
    feed.c.object_id == sa.bindparam("lock_id"),
)


def write_lock_rows(transaction: WriteTransaction, kind: str, ids: Iterable[int]) -> None:
    """Conflict with all other transactions that write these lock rows; no-op outside of Galera."""
    if not is_galera(transaction.connection):
        return
    for lock_id in sorted(ids):
        transaction.execute(
            _INSERT,
            stream_id=_NO_STREAM,
            position=0,
            kind=kind,
            object_id=lock_id,
            created_at=transaction.now,
        )
        transaction.execute(_DELETE, lock_kind=kind, lock_id=lock_id)


def share_row_locks(query: sa.Select[Any]) -> CompiledStatement:
    """Return a query that locks its rows against deletion, shared with other transactions."""
    return CompiledStatement(query.with_for_update(read=True, key_share=True))
