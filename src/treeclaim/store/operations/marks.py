# SPDX-License-Identifier: Apache-2.0
"""Marks: what locks are, between the nodes of a Galera cluster.

A lock holds on one node only. Between nodes nothing but rows written by both is a conflict: the
second to commit is rolled back and run again. Claims and inventories write the generations of
their providers, so they need nothing else. A transaction that relies on something standing still
without writing to it inserts a row named after it, and deletes that row again: two that do so
cannot both be committed without the second one seeing what the first one did.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from treeclaim.store.database.mariadb import is_galera
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.schema.tables import feed

TREE = "tree"
"""The shape of the tree below a root."""

PARTS = "parts"
"""What belongs to a provider without raising its generation."""

CLASS = "class"
"""A resource class that is there."""

_NO_STREAM = 0
"""No stream has this id, so that no reader of the feed finds the row."""

_INSERT = sa.insert(feed)
_DELETE = sa.delete(feed).where(
    feed.c.stream_id == _NO_STREAM,
    feed.c.kind == sa.bindparam("mark_kind"),
    feed.c.object_id == sa.bindparam("mark_id"),
)


def mark(transaction: WriteTransaction, kind: str, ids: Iterable[int]) -> None:
    """Meet all other transactions that mark the same; nothing to do outside of Galera."""
    if not is_galera(transaction.connection):
        return
    for one in sorted(ids):
        transaction.execute(
            _INSERT,
            stream_id=_NO_STREAM,
            position=0,
            kind=kind,
            object_id=one,
            created_at=transaction.now,
        )
        transaction.execute(_DELETE, mark_kind=kind, mark_id=one)
