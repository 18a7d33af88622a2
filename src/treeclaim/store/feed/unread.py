# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed from a cursor, and decides whether a reader must load everything.

A reader applies changes only if all commits that it has read are still part of the database's
history, and all later ones are still in the feed. Otherwise it loads everything. `has_gap` has the
rules, decision 0002 the reasons.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from treeclaim.model.changes import Changes, Cursor, Positions
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction, chunks
from treeclaim.store.feed.rows import FeedDelta, FeedRow
from treeclaim.store.reading.providers.some_providers import load_catalogue, some_providers
from treeclaim.store.schema.tables import feed, resource_providers, streams

_STREAMS = CompiledStatement(
    sa.select(
        streams.c.id,
        streams.c.identity,
        streams.c.position,
        streams.c.pruned_to,
        streams.c.epoch,
        streams.c.closed_in,
    )
)
_COUNTED = sa.select(*(feed.c[name] for name in FeedRow._fields))

_FEW = 1_000
_COUNT_SHARE = 2
_LOAD_SHARE = 6
"""A load of everything needs 7 µs for each provider: a sixth of the 43 µs of a load by id, and half of the time to
count a commit. A reader that is more than `_FEW` behind therefore compares the costs."""

_STREAMS_PER_QUERY = 100
"""Most streams in one query; some databases limit the number of conditions."""


class StreamRow(NamedTuple):
    """A stream, or an epoch; see the table."""

    id: int
    identity: int
    position: int
    pruned_to: int
    epoch: int | None
    closed_in: int | None


def load_changes(transaction: ReadTransaction, cursor: Cursor | None) -> Changes:
    """Load the changes committed since a cursor, or everything if the feed does not have them."""
    rows = load_streams(transaction)
    reached = make_cursor(rows)
    delta = None
    if cursor is not None and not has_gap(rows, cursor):
        delta = _load_delta(transaction, rows, cursor.positions)
    if (
        delta is None
        or delta.is_unknown
        or _is_load_cheaper(transaction, len(delta.provider_ids), _LOAD_SHARE)
    ):
        # This module imports numpy, 14 MB of memory, which processes without a Forest save.
        from treeclaim.store.reading.providers.whole import load_whole_inventory  # noqa: PLC0415

        catalogue = load_catalogue(transaction)
        transaction.extend_timeouts()
        return Changes(
            reached,
            complete=True,
            records=(),
            removed=(),
            catalogue=catalogue,
            whole=load_whole_inventory(transaction),
        )
    records = some_providers(transaction, delta.provider_ids)
    return delta.to_changes(
        reached, records, load_catalogue(transaction) if delta.catalogue else None
    )


def _load_delta(
    transaction: ReadTransaction, rows: Sequence[StreamRow], seen: Positions
) -> FeedDelta | None:
    """Return the sum of the rows after these positions; None if a load of everything is cheaper."""
    commits = sum(max(row.position - seen.get(row.identity, 0), 0) for row in rows)
    if _is_load_cheaper(transaction, commits, _COUNT_SHARE):
        return None
    return FeedDelta.of(load_feed_rows(transaction, rows, seen, _COUNTED))


def _is_load_cheaper(transaction: ReadTransaction, number: int, share: int) -> bool:
    """Return whether a load of everything is cheaper than a number of items of this share."""
    if number <= _FEW:
        return False
    count = sa.select(sa.func.count()).select_from(resource_providers)
    return share * number > int(transaction.scalar(count))


def load_cursor(transaction: ReadTransaction) -> Cursor:
    """Return the end of the change feed in the snapshot of a transaction."""
    return make_cursor(load_streams(transaction))


def load_streams(transaction: ReadTransaction) -> list[StreamRow]:
    """Return the rows of all streams and epochs."""
    return [StreamRow(*row) for row in transaction.rows(_STREAMS)]


def make_cursor(rows: Sequence[StreamRow]) -> Cursor:
    """Return the cursor at the end of all streams."""
    epochs = {row.epoch: row.identity for row in rows if row.epoch is not None}
    return Cursor(
        positions={row.identity: row.position for row in rows},
        epoch=epochs[max(epochs)] if epochs else None,
        finished=frozenset(
            row.identity for row in rows if row.epoch is not None or row.closed_in is not None
        ),
    )


def has_gap(rows: Sequence[StreamRow], cursor: Cursor) -> bool:
    """Return whether a commit that was read is lost, or an unread row was pruned."""
    present = {row.identity: row for row in rows}
    read_positions = cursor.positions
    return (
        # Unread streams may have been removed, or the database was restored.
        cursor.epoch not in present
        or any(
            _went_back(present.get(stream), position)
            for stream, position in read_positions.items()
            if stream not in cursor.finished
        )
        or any(row.pruned_to > read_positions.get(row.identity, 0) for row in rows)
    )


def _went_back(row: StreamRow | None, read_position: int) -> bool:
    """Return whether a stream has lost a commit that was read.

    Pruning cannot have removed the stream: a reader that read it as open has not read the epoch in
    which it was closed, and after the removal of a stream only that epoch and later ones remain.
    """
    if row is None:
        return True
    last_commit = row.position if row.closed_in is None else row.position - 1
    return last_commit < read_position


def load_feed_rows(
    transaction: ReadTransaction,
    rows: Sequence[StreamRow],
    seen: Positions,
    columns: sa.Select[Any],
) -> list[Any]:
    """Return columns of the rows of the feed after these positions."""
    conditions = [
        sa.and_(feed.c.stream_id == row.id, feed.c.position > seen.get(row.identity, 0))
        for row in rows
        if row.position > seen.get(row.identity, 0)
    ]
    feed_rows: list[Any] = []
    for chunk in chunks(conditions, _STREAMS_PER_QUERY):
        feed_rows += transaction.rows(columns.where(sa.or_(*chunk)))
    return feed_rows
