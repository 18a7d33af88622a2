# SPDX-License-Identifier: Apache-2.0
"""Reads the change feed from a cursor, and finds out whether a reader must load everything.

A reader applies changes only if everything that it has read is still part of the database's
history, and everything since is still in the feed. Otherwise it loads everything. The rules are in
`has_gap`, the reasons in decision 0011.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from treeclaim.model.changes import Changes, Cursor, Positions, UsageChange
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.rows import FeedDelta, FeedRow
from treeclaim.store.reading.providers.some_providers import load_catalogue, some_providers
from treeclaim.store.schema.tables import feed, resource_providers, streams

_POSITIONS_SQL = "SELECT identity, position FROM treeclaim_streams"

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
_COUNTED_OF_ONE = CompiledStatement(
    _COUNTED.where(
        feed.c.stream_id == sa.bindparam("stream"), feed.c.position > sa.bindparam("seen")
    )
)
_NAMED = sa.select(
    feed.c.kind,
    sa.literal_column("0").label("stream_id"),
    feed.c.object_id,
    sa.literal_column("0").label("position"),
    feed.c.format,
    sa.null().label("amounts"),
    sa.null().label("created_at"),
).distinct()
_MOST_COMMITS = 1000
"""Commits that a reader counts; a reader further behind loads each provider named since."""

_FEW_PROVIDERS = 1_000
_LOAD_SHARE = 6
"""A provider that is loaded with all others takes a sixth of the time of one that is loaded by its id, 7 µs instead of
43. So a reader that has more to load than a few providers, and a sixth of all, loads everything."""

_STREAMS_PER_QUERY = 100
"""Most streams in one query; some databases limit the number of conditions."""


@dataclass(frozen=True, slots=True)
class UnreadChanges:
    """The changes that a reader has to load.

    Attributes:
        cursor: The reader's next cursor.
        complete: True if it must load everything.
        provider_ids: Providers to load, if not everything.
        catalogue: Whether traits and resource classes must be loaded.
        usage: What claims changed of other providers, by their ids.
    """

    cursor: Cursor
    complete: bool
    provider_ids: frozenset[int]
    catalogue: bool
    usage: Mapping[int, UsageChange]


class StreamRow(NamedTuple):
    """A stream, or an epoch; see the table."""

    id: int
    identity: int
    position: int
    pruned_to: int
    epoch: int | None
    closed_in: int | None


@dataclass(frozen=True, slots=True)
class LoadRequired:
    """Says that there is news that one poll of the feed does not show: it has to be loaded.

    Attributes:
        reached: How far the streams had come; None if not all rows were read.
        delta: What their rows since the cursor of the reader add up to.
    """

    reached: Cursor | None = None
    delta: FeedDelta | None = None


def changes_since(
    transaction: ReadTransaction, cursor: Cursor | None, required: LoadRequired | None = None
) -> Changes:
    """Load what was committed since a cursor, or everything if that cannot be known.

    Args:
        transaction: A transaction that reads one snapshot.
        cursor: How far the reader has come.
        required: What a poll since the same cursor has found.
    """
    unread = unread_changes(transaction, cursor, required)
    catalogue = load_catalogue(transaction) if unread.catalogue else None
    if unread.complete:
        # It needs numpy, 14 MB of memory; processes without a Forest do without.
        from treeclaim.store.reading.providers.whole import whole_inventory  # noqa: PLC0415

        transaction.extend_timeouts()
        return Changes(
            unread.cursor,
            complete=True,
            records=(),
            removed=(),
            catalogue=catalogue,
            whole=whole_inventory(transaction),
        )
    records = some_providers(transaction, unread.provider_ids)
    removed = unread.provider_ids - {record.id for record in records}
    return Changes(
        unread.cursor,
        complete=False,
        records=records,
        removed=sorted(removed),
        catalogue=catalogue,
        usage=unread.usage,
    )


def unread_changes(
    transaction: ReadTransaction, cursor: Cursor | None, required: LoadRequired | None = None
) -> UnreadChanges:
    """Return what was committed since a cursor, in the snapshot of a transaction.

    A poll has found the same if the streams have not moved since: the feed need not be asked again.
    """
    rows = stream_rows(transaction)
    reached = reached_by(rows)
    everything = UnreadChanges(
        reached, complete=True, provider_ids=frozenset(), catalogue=True, usage={}
    )
    if cursor is None or has_gap(rows, cursor):
        return everything
    if required is not None and required.delta is not None and required.reached == reached:
        delta = required.delta
    else:
        delta = FeedDelta.of(_rows_since(transaction, rows, cursor.positions))
    if delta.is_unknown or _is_load_cheaper(transaction, len(delta.provider_ids)):
        return everything
    return UnreadChanges(
        reached,
        complete=False,
        provider_ids=delta.provider_ids,
        catalogue=delta.catalogue,
        usage=delta.usage,
    )


def _is_load_cheaper(transaction: ReadTransaction, changed: int) -> bool:
    if changed <= _FEW_PROVIDERS:
        return False
    count = sa.select(sa.func.count()).select_from(resource_providers)
    return _LOAD_SHARE * changed > int(transaction.scalar(count))


def _rows_since(
    transaction: ReadTransaction, rows: Sequence[StreamRow], read_positions: Positions
) -> list[FeedRow]:
    if commits_since(rows, read_positions) > _MOST_COMMITS:
        return feed_since(transaction, rows, read_positions, _NAMED)
    return counted_since(transaction, rows, read_positions)


def commits_since(rows: Sequence[StreamRow], seen: Positions) -> int:
    """Return how many commits there were after the positions that were read."""
    return sum(max(row.position - seen.get(row.identity, 0), 0) for row in rows)


def counted_since(
    transaction: ReadTransaction, rows: Sequence[StreamRow], seen: Positions
) -> list[FeedRow]:
    """Return what was recorded after the positions that were read, with everything that claims changed."""
    moved = [row for row in rows if row.position > seen.get(row.identity, 0)]
    if len(moved) != 1:
        return feed_since(transaction, rows, seen, _COUNTED)
    (row,) = moved
    return transaction.rows(_COUNTED_OF_ONE, stream=row.id, seen=seen.get(row.identity, 0))


def positions_by(probe: Probe) -> Positions:
    """Return how far all streams have come.

    Raises:
        StoreUnavailableError: if the database does not answer.
    """
    return {row[0]: row[1] for row in probe.rows(_POSITIONS_SQL)}


def present_cursor(transaction: ReadTransaction) -> Cursor:
    """Return the end of the change feed in the snapshot of a transaction."""
    return reached_by(stream_rows(transaction))


def stream_rows(transaction: ReadTransaction) -> list[StreamRow]:
    """Return the rows of all streams and epochs."""
    return [StreamRow(*row) for row in transaction.rows(_STREAMS)]


def reached_by(rows: Sequence[StreamRow]) -> Cursor:
    """Return the cursor of a reader that has read all of these streams."""
    epochs = {row.epoch: row.identity for row in rows if row.epoch is not None}
    return Cursor(
        positions={row.identity: row.position for row in rows},
        epoch=epochs[max(epochs)] if epochs else None,
        finished=frozenset(
            row.identity for row in rows if row.epoch is not None or row.closed_in is not None
        ),
    )


def has_gap(rows: Sequence[StreamRow], cursor: Cursor) -> bool:
    """Return whether something that was read is gone, or something unread was pruned."""
    present = {row.identity: row for row in rows}
    read_positions = cursor.positions
    return (
        # Streams that the reader never saw may be gone, or the database was restored.
        cursor.epoch not in present
        or any(_went_back(present.get(stream), read_positions[stream]) for stream in _open(cursor))
        or any(row.pruned_to > read_positions.get(row.identity, 0) for row in rows)
    )


def _open(cursor: Cursor) -> AbstractSet[int]:
    """Return the streams that were still in use when they were read."""
    return cursor.positions.keys() - cursor.finished


def _went_back(row: StreamRow | None, read_position: int) -> bool:
    """Return whether a stream has lost a commit that was read.

    Pruning cannot have removed it: a reader that saw it open has not seen the epoch in which it
    was closed, and when a stream is removed, only that epoch and later ones remain.
    """
    if row is None:
        return True
    last_commit = row.position if row.closed_in is None else row.position - 1
    return last_commit < read_position


def feed_since(
    transaction: ReadTransaction,
    rows: Sequence[StreamRow],
    seen: Positions,
    columns: sa.Select[Any],
) -> list[Any]:
    """Return columns of the rows of the feed after the positions that were read."""
    past = [
        sa.and_(feed.c.stream_id == row.id, feed.c.position > seen.get(row.identity, 0))
        for row in rows
        if row.position > seen.get(row.identity, 0)
    ]
    feed_rows: list[Any] = []
    for first in range(0, len(past), _STREAMS_PER_QUERY):
        batch = past[first : first + _STREAMS_PER_QUERY]
        feed_rows += transaction.rows(columns.where(sa.or_(*batch)))
    return feed_rows
