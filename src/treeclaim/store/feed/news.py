# SPDX-License-Identifier: Apache-2.0
"""What a reader of the change feed has to look at again, and whether it missed anything.

A reader is told of changes only if everything that it has seen is still a part of the database's
history, and if everything since is still in the feed. Else it loads everything. Decision 0011 has
the reasons; the rules are those of `_missed`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.model.changes import Cursor, Positions
from treeclaim.store.database.transactions import ReadTransaction, chunks
from treeclaim.store.feed.streams import CATALOGUE, PROVIDER
from treeclaim.store.schema.tables import feed, streams

POSITIONS_SQL = "SELECT id, position FROM treeclaim_streams"
"""The question whether anything is new, as plain SQL; it is asked at every read."""

_STREAMS = sa.select(
    streams.c.id, streams.c.position, streams.c.pruned_to, streams.c.epoch, streams.c.closed_in
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
    rows = {row.id: row for row in transaction.rows(_STREAMS)}
    reached = _reached(rows)
    if cursor is None or _missed(rows, cursor):
        return News(reached, complete=True, provider_ids=frozenset(), catalogue=True)
    known = {stream_id: cursor.positions.get(stream_id, 0) for stream_id in rows}
    advanced = [stream_id for stream_id, row in rows.items() if row.position > known[stream_id]]
    told = _told_since(transaction, advanced, known)
    return News(
        reached,
        complete=False,
        provider_ids=frozenset(row.object_id for row in told if row.kind == PROVIDER),
        catalogue=any(row.kind == CATALOGUE for row in told),
    )


def _reached(rows: Mapping[int, Any]) -> Cursor:
    """Return the cursor of a reader that has seen these streams."""
    epochs = {row.epoch: row.id for row in rows.values() if row.epoch is not None}
    return Cursor(
        positions={row.id: row.position for row in rows.values()},
        epoch=epochs[max(epochs)] if epochs else None,
        finished=frozenset(
            row.id for row in rows.values() if row.epoch is not None or row.closed_in is not None
        ),
    )


def _missed(rows: Mapping[int, Any], cursor: Cursor) -> bool:
    """Tell whether a reader saw what was undone since, or missed what was pruned since."""
    return (
        # Streams that it never saw may have been removed, or history is another one since.
        cursor.epoch not in rows
        or any(_went_back(rows.get(stream_id), seen) for stream_id, seen in _open(cursor))
        or any(row.pruned_to > cursor.positions.get(row.id, 0) for row in rows.values())
    )


def _open(cursor: Cursor) -> list[tuple[int, int]]:
    """Return the streams that could still go on when they were seen, with their positions."""
    return [item for item in cursor.positions.items() if item[0] not in cursor.finished]


def _went_back(row: Any, seen: int) -> bool:
    """Tell whether a stream lost a commit that was seen.

    It cannot be gone: whoever saw it open has not seen it closed, and is told to load everything
    by the epoch before it is removed.
    """
    if row is None:
        return True
    last_commit = row.position if row.closed_in is None else row.position - 1
    return bool(last_commit < seen)


def _told_since(
    transaction: ReadTransaction, advanced: Sequence[int], known: Positions
) -> list[Any]:
    """Return what some streams tell past the positions known of them."""
    found: list[Any] = []
    for some in chunks(advanced, _STREAMS_AT_ONCE):
        past = (
            sa.and_(feed.c.stream_id == stream_id, feed.c.position > known[stream_id])
            for stream_id in some
        )
        found += transaction.rows(sa.select(feed.c.kind, feed.c.object_id).where(sa.or_(*past)))
    return found
