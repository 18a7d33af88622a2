# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed from a cursor, and finds out whether a reader must load everything.

A reader applies changes only if everything that it has read is still part of the database's
history, and everything since is still in the feed. Otherwise it loads everything. The rules are in
`has_gap`, the reasons in decision 0011.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.model.changes import Changes, Cursor, Positions
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.streams import CATALOGUE, FORMAT, PROVIDER
from treeclaim.store.reading import loading
from treeclaim.store.schema.tables import feed, streams

POSITIONS_SQL = "SELECT COALESCE(identity, id), position FROM treeclaim_streams"
"""The query whether anything is new, as plain SQL; it runs at every read."""

_STREAMS = sa.select(
    streams.c.id,
    sa.func.coalesce(streams.c.identity, streams.c.id).label("identity"),
    streams.c.position,
    streams.c.pruned_to,
    streams.c.epoch,
    streams.c.closed_in,
)
_TOUCHED = sa.select(feed.c.kind, feed.c.object_id, feed.c.format)
_STREAMS_PER_QUERY = 100
"""Most streams in one query; some databases limit the number of conditions."""


@dataclass(frozen=True, slots=True)
class UnreadChanges:
    """What a reader has to load.

    Attributes:
        cursor: The reader's next cursor.
        complete: True if it must load everything.
        provider_ids: Providers to load, if not everything.
        catalogue: Whether traits and resource classes must be loaded.
    """

    cursor: Cursor
    complete: bool
    provider_ids: frozenset[int]
    catalogue: bool


def changes_since(transaction: ReadTransaction, cursor: Cursor | None) -> Changes:
    """Load what was committed since a cursor, or everything if that cannot be known."""
    unread = unread_changes(transaction, cursor)
    catalogue = loading.catalogue(transaction) if unread.catalogue else None
    if unread.complete:
        transaction.extend_timeouts()
        records = loading.every_provider(transaction)
        return Changes(
            unread.cursor, complete=True, records=records, removed=(), catalogue=catalogue
        )
    records = loading.some_providers(transaction, unread.provider_ids)
    removed = unread.provider_ids - {record.id for record in records}
    return Changes(
        unread.cursor,
        complete=False,
        records=records,
        removed=sorted(removed),
        catalogue=catalogue,
    )


def unread_changes(transaction: ReadTransaction, cursor: Cursor | None) -> UnreadChanges:
    """Return what was committed since a cursor, in the snapshot of a transaction."""
    rows = stream_rows(transaction)
    reached = reached_by(rows)
    everything = UnreadChanges(reached, complete=True, provider_ids=frozenset(), catalogue=True)
    if cursor is None or has_gap(rows, cursor):
        return everything
    rows_of_feed = feed_since(transaction, rows, cursor.positions, _TOUCHED)
    if any(is_unknown(row.format) for row in rows_of_feed):
        return everything
    return UnreadChanges(
        reached,
        complete=False,
        provider_ids=frozenset(row.object_id for row in rows_of_feed if row.kind == PROVIDER),
        catalogue=any(row.kind == CATALOGUE for row in rows_of_feed),
    )


def present_cursor(transaction: ReadTransaction) -> Cursor:
    """Return the end of the change feed in the snapshot of a transaction."""
    return reached_by(stream_rows(transaction))


def stream_rows(transaction: ReadTransaction) -> list[Any]:
    """Return the rows of all streams and epochs."""
    return transaction.rows(_STREAMS)


def is_unknown(form: int | None) -> bool:
    """Tell whether a row of the feed has a format of a later release."""
    return form is not None and form > FORMAT


def reached_by(rows: Sequence[Any]) -> Cursor:
    """Return the cursor of a reader that has read all of these streams."""
    epochs = {row.epoch: row.identity for row in rows if row.epoch is not None}
    return Cursor(
        positions={row.identity: row.position for row in rows},
        epoch=epochs[max(epochs)] if epochs else None,
        finished=frozenset(
            row.identity for row in rows if row.epoch is not None or row.closed_in is not None
        ),
    )


def has_gap(rows: Sequence[Any], cursor: Cursor) -> bool:
    """Return whether something that was read is gone, or something unread was pruned."""
    present = {row.identity: row for row in rows}
    seen = cursor.positions
    return (
        # Streams that the reader never saw may be gone, or the database was restored.
        cursor.epoch not in present
        or any(_went_back(present.get(stream), seen[stream]) for stream in _open(cursor))
        or any(row.pruned_to > seen.get(row.identity, 0) for row in rows)
    )


def _open(cursor: Cursor) -> AbstractSet[int]:
    """Return the streams that were still in use when they were read."""
    return cursor.positions.keys() - cursor.finished


def _went_back(row: Any, seen: int) -> bool:
    """Return whether a stream has lost a commit that was read.

    Pruning cannot have removed it: a reader that saw it open has not seen the epoch in which it
    was closed, and when a stream is removed, only that epoch and later ones remain.
    """
    if row is None:
        return True
    last_commit = row.position if row.closed_in is None else row.position - 1
    return bool(last_commit < seen)


def feed_since(
    transaction: ReadTransaction, rows: Sequence[Any], seen: Positions, columns: sa.Select[Any]
) -> list[Any]:
    """Return columns of the rows of the feed after the positions that were read, each kind once."""
    past = [
        sa.and_(feed.c.stream_id == row.id, feed.c.position > seen.get(row.identity, 0))
        for row in rows
        if row.position > seen.get(row.identity, 0)
    ]
    found: list[Any] = []
    for first in range(0, len(past), _STREAMS_PER_QUERY):
        some = past[first : first + _STREAMS_PER_QUERY]
        found += transaction.rows(columns.distinct().where(sa.or_(*some)))
    return found
