# SPDX-License-Identifier: Apache-2.0
"""What a reader of the change feed has to look at again, and whether it missed anything.

A reader is told of changes only if everything that it has seen is still a part of the database's
history, and if everything since is still in the feed. Else it loads everything. Decision 0011 has
the reasons; the rules are those of `_missed`.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.model.changes import Cursor, Positions
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.streams import CATALOGUE, PROVIDER
from treeclaim.store.schema.tables import feed, streams

POSITIONS_SQL = "SELECT COALESCE(identity, id), position FROM treeclaim_streams"
"""The question whether anything is new, as plain SQL; it is asked at every read."""

_STREAMS = sa.select(
    streams.c.id,
    sa.func.coalesce(streams.c.identity, streams.c.id).label("identity"),
    streams.c.position,
    streams.c.pruned_to,
    streams.c.epoch,
    streams.c.closed_in,
)
_STREAMS_AT_ONCE = 100
"""Most streams in one question; some databases have a limit to conditions."""


@dataclass(frozen=True, slots=True)
class News:
    """What a reader has to look at again.

    Attributes:
        cursor: Where the reader stands afterwards.
        complete: True if it must load everything.
        provider_ids: Providers to load, if not everything.
        catalogue: Whether traits and resource classes must be loaded.
    """

    cursor: Cursor
    complete: bool
    provider_ids: frozenset[int]
    catalogue: bool


def news(transaction: ReadTransaction, cursor: Cursor | None) -> News:
    """Find out what was committed since a cursor, within the snapshot of a transaction."""
    rows = transaction.rows(_STREAMS)
    reached = _reached(rows)
    if cursor is None or _missed(rows, cursor):
        return News(reached, complete=True, provider_ids=frozenset(), catalogue=True)
    told = _told_since(transaction, rows, cursor.positions)
    return News(
        reached,
        complete=False,
        provider_ids=frozenset(row.object_id for row in told if row.kind == PROVIDER),
        catalogue=any(row.kind == CATALOGUE for row in told),
    )


def present(transaction: ReadTransaction) -> Cursor:
    """Return how far the change feed has come in the snapshot of a transaction."""
    return _reached(transaction.rows(_STREAMS))


def _reached(rows: Sequence[Any]) -> Cursor:
    """Return the cursor of a reader that has seen these streams."""
    epochs = {row.epoch: row.identity for row in rows if row.epoch is not None}
    return Cursor(
        positions={row.identity: row.position for row in rows},
        epoch=epochs[max(epochs)] if epochs else None,
        finished=frozenset(
            row.identity for row in rows if row.epoch is not None or row.closed_in is not None
        ),
    )


def _missed(rows: Sequence[Any], cursor: Cursor) -> bool:
    """Tell whether a reader saw what was undone since, or missed what was pruned since."""
    present = {row.identity: row for row in rows}
    seen = cursor.positions
    return (
        # Streams that it never saw may have been removed, or history is another one since.
        cursor.epoch not in present
        or any(_went_back(present.get(stream), seen[stream]) for stream in _open(cursor))
        or any(row.pruned_to > seen.get(row.identity, 0) for row in rows)
    )


def _open(cursor: Cursor) -> AbstractSet[int]:
    """Return the streams that could still go on when they were seen."""
    return cursor.positions.keys() - cursor.finished


def _went_back(row: Any, seen: int) -> bool:
    """Tell whether a stream lost a commit that was seen.

    It cannot have been removed: who saw it open has not seen the epoch in which it was closed,
    and only that one and later ones are left when it goes.
    """
    if row is None:
        return True
    last_commit = row.position if row.closed_in is None else row.position - 1
    return bool(last_commit < seen)


def _told_since(transaction: ReadTransaction, rows: Sequence[Any], seen: Positions) -> list[Any]:
    """Return what the streams tell past the positions seen of them."""
    past = [
        sa.and_(feed.c.stream_id == row.id, feed.c.position > seen.get(row.identity, 0))
        for row in rows
        if row.position > seen.get(row.identity, 0)
    ]
    found: list[Any] = []
    for first in range(0, len(past), _STREAMS_AT_ONCE):
        some = past[first : first + _STREAMS_AT_ONCE]
        found += transaction.rows(sa.select(feed.c.kind, feed.c.object_id).where(sa.or_(*some)))
    return found
