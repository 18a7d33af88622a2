# SPDX-License-Identifier: Apache-2.0
"""Polls the feed: a single statement that shows what is new, and mostly all of it.

It reads the positions of all streams, and the rows after the positions that the reader has seen of
those streams that moved lately. As one statement sees one snapshot, both belong together. If these
rows are complete and name nothing to load, they tell the reader everything.

If they name a few providers, one more statement loads these, together with the positions of all streams.
If those are still the same, what it loaded belongs to them. Otherwise the reader loads in a
snapshot of its own (`unread.py`), as it does for a change of the catalogue or of very many
providers, a stream that it did not know or that had long been idle, a pruning, a commit of very
many rows.

Where the database can say at less cost that nothing was committed since a look, that look still holds: with SQLite
this takes 3 µs, and the positions of two streams 11, of twelve 42.

Which streams moved lately is remembered here, in one place for all readers of a process; it decides
what a look costs, never what it shows.
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
from treeclaim.store.feed.unread import StreamRow, has_gap, reached_by
from treeclaim.store.reading.providers.json_columns import as_rows, rows_by_name
from treeclaim.store.reading.providers.some_providers import PART_QUERIES, records_of
from treeclaim.store.schema import tables

_STREAM = "stream"
"""Stands for the kind in the rows that are streams."""

_SQL = """
SELECT 'stream', id, identity, position, pruned_to, epoch, closed_in, NULL, NULL
FROM treeclaim_streams
"""
_SQL_OF_FEED = """
UNION ALL SELECT * FROM (
SELECT kind, stream_id, object_id, position, format, 0 AS epoch, 0 AS closed_in, amounts, created_at
FROM treeclaim_feed WHERE {which} LIMIT {most}) told
"""
_PAIR = "(stream_id = {mark} AND position > {mark})"
_NO_STREAM = (0, 0)
"""No stream has this id, and only what has not been committed this position."""

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
"""Everything about some providers, and the positions of all streams in the same snapshot."""

_MOST_PROVIDERS = 64
"""Providers that one statement loads while other threads wait for the connection: a tree or so."""

_MOST_STREAMS = 16
"""Streams that are read together with their positions: about those of two machines' workers."""

_LOOKS = 2
"""For one reader: the second look asks for the rows of the streams that the first showed to have moved."""

_MOST_ROWS = 1000
"""Rows that one poll reads: some hundred kilobytes."""


class LoadRequiredError(Exception):
    """There is news that a poll does not show: a reader has to load it in a snapshot."""


class FeedPoller:
    """Polls the feed for the readers of one process; threads may share it.

    Args:
        probe: The connection.
        dialect: The dialect of its database.
    """

    def __init__(self, probe: Probe, dialect: Dialect) -> None:
        self._probe = probe
        self._dialect = dialect
        self._pair = _PAIR.format(mark="?" if dialect.paramstyle == "qmark" else "%s")
        self._lately: tuple[tuple[int, int], ...] = ()
        self._known: tuple[tuple[int, int] | None, Mapping[int, int]] = (None, {})
        """A version of the database, and the positions of all streams then."""

    def since(self, cursor: Cursor) -> Changes | None:
        """Return what was committed since a cursor; None if nothing was.

        Raises:
            LoadRequiredError: if it has to be loaded.
            StoreUnavailableError: if the database does not answer.
        """
        # Whatever is committed from here on makes another version, whether the query below sees it or not.
        version = self._probe.version()
        if version is not None and self._known == (version, cursor.positions):
            return None
        for _ in range(_LOOKS):
            query = self._statement(cursor)
            rows = self._probe.rows(*query)
            positions = {row[2]: row[3] for row in rows if row[0] == _STREAM}
            self._known = version, positions
            if cursor.positions == positions:
                return None
            streams = [StreamRow(*row[1:7]) for row in rows if row[0] == _STREAM]
            feed_rows = [FeedRow(*row[:5], *row[7:]) for row in rows if row[0] != _STREAM]
            moved = [
                row for row in streams if row.position > cursor.positions.get(row.identity, 0)
            ]
            self._note(moved)
            if has_gap(streams, cursor):
                break
            unread = _unread(feed_rows, moved, cursor)
            if len(feed_rows) < _MOST_ROWS and _is_all(unread, moved, cursor):
                return self._load(reached_by(streams), FeedDelta.of(unread))
            if self._statement(cursor) == query:
                break
        raise LoadRequiredError

    def _load(self, reached: Cursor, delta: FeedDelta) -> Changes:
        """Load the providers that rows name.

        Raises:
            LoadRequiredError: if they are too many, or more was committed since.
            StoreUnavailableError: if the database does not answer.
        """
        records: Sequence[ProviderRecord] = ()
        if delta.is_unknown or delta.catalogue or len(delta.provider_ids) > _MOST_PROVIDERS:
            raise LoadRequiredError
        if delta.provider_ids:
            load = _LOAD.ready(self._dialect, {"ids": sorted(delta.provider_ids)})
            rows = self._probe.rows(load.sql, load.parameters)
            loaded = rows_by_name(rows)
            if reached_by([StreamRow(*row) for row in loaded[_STREAMS]]) != reached:
                raise LoadRequiredError
            records = records_of(loaded)
        return Changes(
            reached,
            complete=False,
            records=records,
            removed=sorted(delta.provider_ids - {record.id for record in records}),
            catalogue=None,
            usage=delta.usage,
        )

    def _statement(self, cursor: Cursor) -> tuple[str, Sequence[int]]:
        """Return the SQL with its parameters; there are few texts, which drivers prepare."""
        position_by_stream = cursor.positions
        pairs = [
            (stream_id, position_by_stream.get(identity, 0))
            for identity, stream_id in self._lately
            if identity not in cursor.finished
        ]
        if not pairs:
            return _SQL, ()
        length = 1 << (len(pairs) - 1).bit_length()
        pairs += [_NO_STREAM] * (length - len(pairs))
        which = " OR ".join([self._pair] * length)
        sql = _SQL + _SQL_OF_FEED.format(which=which, most=_MOST_ROWS)
        return sql, [number for pair in pairs for number in pair]

    def _note(self, moved: Sequence[StreamRow]) -> None:
        """Remember which streams moved; should two threads do so at once, one is remembered."""
        now = tuple((row.identity, row.id) for row in moved if row.closed_in is None)
        before = tuple(stream for stream in self._lately if stream not in now)
        self._lately = (now + before)[:_MOST_STREAMS]


def _unread(rows: Sequence[FeedRow], moved: Sequence[StreamRow], cursor: Cursor) -> list[FeedRow]:
    """Return the rows that the cursor has not read.

    In a restored database a stream may have the id of another one that was remembered, so the statement
    returns rows of it that were read before.
    """
    read_positions = {row.id: cursor.positions.get(row.identity, 0) for row in moved}
    return [
        row
        for row in rows
        if row.stream_id in read_positions and row.position > read_positions[row.stream_id]
    ]


def _is_all(unread: Sequence[FeedRow], moved: Sequence[StreamRow], cursor: Cursor) -> bool:
    """Return whether rows are all of the streams that moved: each commit has left some.

    A stream that was closed has moved without a row.
    """
    commits: defaultdict[int, set[int]] = defaultdict(set)
    for row in unread:
        commits[row.stream_id].add(row.position)
    return all(
        len(commits[row.id]) == row.position - cursor.positions.get(row.identity, 0)
        for row in moved
    )
