# SPDX-License-Identifier: Apache-2.0
"""Lock rows: locks that hold between the nodes of a Galera cluster.

A row lock holds on one node only. Between nodes the only conflict is a row written by both: the
second to commit is rolled back and runs again. Claims and inventories write the generations of
their providers, so they conflict anyhow. A transaction that relies on a row without writing to it
inserts a row named after it, and deletes that row again. Two that do so cannot both commit unless
the second one has read what the first one wrote. On one node, those who rely on the same row share
its lock against deletion: `share_row_locks`.
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
"""The terms of a hold, and what is drawn from it; named after its consumer's row."""

USE = "use"
"""The usage of a provider by claims that do not raise its generation: they consume of it."""

_NO_STREAM = 0
"""No stream has this id, so readers of the feed never see a lock row."""

_INSERT = sa.insert(feed)
_DELETE = sa.delete(feed).where(
    feed.c.stream_id == _NO_STREAM,
    feed.c.kind == sa.bindparam("lock_kind"),
    feed.c.object_id == sa.bindparam("lock_id"),
)


def take_lock_rows(transaction: WriteTransaction, kind: str, ids: Iterable[int]) -> None:
    """Conflict with all other transactions that take these lock rows; no-op outside of Galera."""
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
    """Return a query that locks the rows it finds against deletion, shared with other transactions."""
    return CompiledStatement(query.with_for_update(read=True, key_share=True))
