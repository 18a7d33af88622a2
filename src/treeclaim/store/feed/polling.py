# SPDX-License-Identifier: Apache-2.0
"""Polls the feed by a single statement, which usually returns everything that is new.

The statement reads the positions of all streams, and for recently advanced streams the rows after the
positions of the reader. One statement reads one snapshot, so rows and positions are consistent. If
the rows are complete and name no provider to load, the poll is done.

If they name a few providers, one more statement loads these with the positions of all streams. The
result is valid if the positions are unchanged. Otherwise the reader loads in a snapshot
(`unread.py`). It also does so for a change of the catalogue or of many providers, a new stream, a
stream that was idle for long, a pruning, or a commit of many rows.

SQLite reports by a change number, in 3 µs, that nothing was committed since the last poll; the
positions of two streams cost 11 µs, those of twelve 42 µs.

All readers of a process share the list of recently advanced streams. The list affects the cost of a
poll, and never its result.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from treeclaim.model.changes import Changes, Cursor
from treeclaim.model.provider import ProviderRecord
from treeclaim.store.database.compiled import CompiledStatement
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.rows import FeedDelta, FeedRow
from treeclaim.store.feed.unread import StreamRow, has_gap, make_cursor
from treeclaim.store.reading.providers.json_columns import as_rows, group_rows
from treeclaim.store.reading.providers.some_providers import PART_QUERIES, make_records
from treeclaim.store.schema import tables

_STREAM = "stream"
"""Stands for the kind in the rows that are streams."""

_POSITIONS_SQL = """
SELECT 'stream', id, identity, position, pruned_to, epoch, closed_in, NULL, NULL
FROM treeclaim_streams
"""
_ROWS_SQL = """
UNION ALL SELECT * FROM (
SELECT kind, stream_id, object_id, position, format, 0 AS epoch, 0 AS closed_in, amounts, created_at
FROM treeclaim_feed WHERE {pairs} LIMIT {most}) unread
"""
_PAIR = "(stream_id = {mark} AND position > {mark})"
_NO_STREAM = (0, 0)
"""A pair for padding, with an id that no stream has."""

_STREAMS = "streams"
_LOAD = CompiledStatement(
    sa.union_all(
        *PART_QUERIES,
        as_rows(
            _STREAMS,
            sa.select(
                tables.streams.c.id,
                tables.streams.c.identity,
                tables.streams.c.position,
                tables.streams.c.pruned_to,
                tables.streams.c.epoch,
                tables.streams.c.closed_in,
            ),
        ),
    )
)
"""Loads providers, and the positions of all streams in the same snapshot."""

_MOST_PROVIDERS = 64
"""Providers that one statement loads while other threads wait for the connection: about a tree."""

_MOST_STREAMS = 16
"""Streams whose rows a poll reads: about as many as the workers of two machines use."""

_POLLS = 2
"""Polls for one reader: the second one reads the rows of the streams that the first found to be advanced."""

_MOST_ROWS = 1000
"""Rows that one poll reads: some hundred kilobytes."""


class LoadRequiredError(Exception):
    """A poll did not return everything that is new; the reader must load it in a snapshot."""


class FeedPoller:
    """Polls the feed for the readers of one process; thread-safe.

    Args:
        probe: The connection.
        dialect: The dialect of its database.
    """

    def __init__(self, probe: Probe, dialect: Dialect) -> None:
        self._probe = probe
        self._dialect = dialect
        self._pair = _PAIR.format(mark="?" if dialect.paramstyle == "qmark" else "%s")
        self._recent_streams: tuple[tuple[int, int], ...] = ()
        self._last_poll: tuple[tuple[int, int] | None, Mapping[int, int]] = (None, {})
        """The version of the database before the last poll, and the positions of all streams."""

    def since(self, cursor: Cursor) -> Changes | None:
        """Return the changes committed since a cursor; None if nothing was committed.

        Raises:
            LoadRequiredError: if they must be loaded in a snapshot.
            StoreUnavailableError: if the database does not respond.
        """
        # Read before the query: every later commit changes the version, whether the query sees it or not.
        version = self._probe.version()
        if version is not None and self._last_poll == (version, cursor.positions):
            return None
        for _ in range(_POLLS):
            query = self._statement(cursor)
            rows = self._probe.rows(*query)
            positions = {row[2]: row[3] for row in rows if row[0] == _STREAM}
            self._last_poll = version, positions
            if cursor.positions == positions:
                return None
            streams = [StreamRow(*row[1:7]) for row in rows if row[0] == _STREAM]
            feed_rows = [FeedRow(*row[:5], *row[7:]) for row in rows if row[0] != _STREAM]
            advanced = [
                row for row in streams if row.position > cursor.positions.get(row.identity, 0)
            ]
            self._record_advanced(advanced)
            if has_gap(streams, cursor):
                break
            unread = _select_unread(feed_rows, advanced, cursor)
            if len(feed_rows) < _MOST_ROWS and _is_complete(unread, advanced, cursor):
                return self._load(make_cursor(streams), FeedDelta.of(unread))
            if self._statement(cursor) == query:
                break
        raise LoadRequiredError

    def _load(self, reached: Cursor, delta: FeedDelta) -> Changes:
        """Load the providers that rows name.

        Raises:
            LoadRequiredError: if they are too many, or another transaction was committed since.
            StoreUnavailableError: if the database does not respond.
        """
        records: Sequence[ProviderRecord] = ()
        if delta.is_unknown or delta.catalogue or len(delta.provider_ids) > _MOST_PROVIDERS:
            raise LoadRequiredError
        if delta.provider_ids:
            load = _LOAD.ready(self._dialect, {"ids": sorted(delta.provider_ids)})
            rows = self._probe.rows(load.sql, load.parameters)
            loaded = group_rows(rows)
            if make_cursor([StreamRow(*row) for row in loaded[_STREAMS]]) != reached:
                raise LoadRequiredError
            records = make_records(loaded)
        return delta.to_changes(reached, records)

    def _statement(self, cursor: Cursor) -> tuple[str, Sequence[int]]:
        """Return the SQL and its parameters; the lists are padded, so that drivers prepare few texts."""
        position_by_stream = cursor.positions
        pairs = [
            (stream_id, position_by_stream.get(identity, 0))
            for identity, stream_id in self._recent_streams
            if identity not in cursor.finished
        ]
        if not pairs:
            return _POSITIONS_SQL, ()
        length = 1 << (len(pairs) - 1).bit_length()
        pairs += [_NO_STREAM] * (length - len(pairs))
        condition = " OR ".join([self._pair] * length)
        sql = _POSITIONS_SQL + _ROWS_SQL.format(pairs=condition, most=_MOST_ROWS)
        return sql, [number for pair in pairs for number in pair]

    def _record_advanced(self, advanced: Sequence[StreamRow]) -> None:
        """Record recently advanced streams; of two concurrent calls the last one counts."""
        latest = tuple((row.identity, row.id) for row in advanced if row.closed_in is None)
        earlier = tuple(stream for stream in self._recent_streams if stream not in latest)
        self._recent_streams = (latest + earlier)[:_MOST_STREAMS]


def _select_unread(
    rows: Sequence[FeedRow], advanced: Sequence[StreamRow], cursor: Cursor
) -> list[FeedRow]:
    """Return the rows after the cursor.

    In a restored database a stream may have the id of another recorded stream, and the statement then
    returns rows before the cursor.
    """
    read_positions = {row.id: cursor.positions.get(row.identity, 0) for row in advanced}
    return [
        row
        for row in rows
        if row.stream_id in read_positions and row.position > read_positions[row.stream_id]
    ]


def _is_complete(unread: Sequence[FeedRow], advanced: Sequence[StreamRow], cursor: Cursor) -> bool:
    """Return whether these are all rows of the advanced streams: each commit inserts at least one row.

    The closing of a stream advances it without a row.
    """
    commits: defaultdict[int, set[int]] = defaultdict(set)
    for row in unread:
        commits[row.stream_id].add(row.position)
    return all(
        len(commits[row.id]) == row.position - cursor.positions.get(row.identity, 0)
        for row in advanced
    )
