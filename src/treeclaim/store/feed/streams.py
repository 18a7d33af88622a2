# SPDX-License-Identifier: Apache-2.0
"""The change feed: which providers each committed transaction touched, in streams.

The problem. Numbers from one sequence are not handed out in the order of commits: a smaller one
may become visible after a larger one, and a reader that remembers the largest would miss it. A
lock around the sequence would order it, but then all writers of a cloud would wait for each
other's disk.

The answer. Each writer has a stream of its own: a row in `treeclaim_streams` whose position it
advances in every transaction, under the same commit as the changes themselves. A stream is used by
one transaction at a time, so within it the order of positions is the order of commits. A reader
remembers a position for each stream. If a stream's position is past that, the rows in between are
in the feed, all of them, because they were committed together with the position. No writer waits
for another, on any database, with any number of processes.

Rows older than some time are pruned; `pruned_to` says up to where. A reader that is further behind,
or that misses a stream it knew, loads everything.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from treeclaim.model.changes import Cursor
from treeclaim.store.database.ready import Ready
from treeclaim.store.database.transactions import (
    ReadTransaction,
    RetryTransactionError,
    WriteTransaction,
    chunks,
    utc_now,
)
from treeclaim.store.schema.tables import feed, streams

PROVIDER = "provider"
CATALOGUE = "catalogue"

_NEW_STREAM = sa.insert(streams)
_ADVANCE = Ready(
    sa.update(streams)
    .where(streams.c.id == sa.bindparam("stream"), streams.c.position == sa.bindparam("old"))
    .values(position=sa.bindparam("new"), used_at=sa.bindparam("at"))
)
_TELL = Ready(sa.insert(feed).inline())
_POSITIONS = sa.select(streams.c.id, streams.c.position, streams.c.pruned_to)
_STREAMS_AT_ONCE = 100
"""Most streams in one question; some databases have a limit to conditions."""

POSITIONS_SQL = "SELECT id, position FROM treeclaim_streams"
"""The question whether anything is new, as plain SQL; it is asked at every read."""


@dataclass(slots=True)
class Stream:
    """A stream that this process owns.

    Attributes:
        id: Its row; None until the first transaction makes it.
        position: Where it stands.
    """

    id: int | None = None
    position: int = 0


class StreamPool:
    """The streams of one process; as many as it has transactions at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Stream] = []
        self._process = os.getpid()

    @contextmanager
    def lend(self) -> Iterator[Stream]:
        """Lend a stream to one transaction.

        It comes back only if the block ends well. After an error nobody knows whether the
        transaction was committed, so the stream is given up, and the next one takes its place.
        """
        stream = self._take()
        yield stream
        with self._lock:
            self._idle.append(stream)

    def _take(self) -> Stream:
        with self._lock:
            if self._process != os.getpid():
                # After a fork the streams are still the parent's.
                self._process, self._idle = os.getpid(), []
            return self._idle.pop() if self._idle else Stream()


def append(transaction: WriteTransaction, stream: Stream) -> Stream:
    """Tell the feed what a transaction touched; return the stream as it is after the commit."""
    position = stream.position + 1
    stream_id = _advanced(transaction, stream, position)
    if stream_id is None:
        stream_id, position = _created(transaction), 1
    told = [(PROVIDER, one) for one in sorted(transaction.touched_providers)]
    if transaction.touched_catalogue:
        told.append((CATALOGUE, 0))
    transaction.execute_each(
        _TELL,
        (
            {
                "stream_id": stream_id,
                "position": position,
                "kind": kind,
                "object_id": object_id,
                "created_at": transaction.now,
            }
            for kind, object_id in told
        ),
    )
    return Stream(stream_id, position)


def _advanced(transaction: WriteTransaction, stream: Stream, position: int) -> int | None:
    """Advance a stream; None if it was not made yet, or was pruned away."""
    if stream.id is None:
        return None
    result = transaction.execute(
        _ADVANCE, stream=stream.id, old=stream.position, new=position, at=transaction.now
    )
    return stream.id if result.rowcount == 1 else None


def _created(transaction: WriteTransaction) -> int:
    result = transaction.execute(_NEW_STREAM, position=1, pruned_to=0, used_at=transaction.now)
    if not result.inserted_primary_key:
        raise RetryTransactionError
    return int(result.inserted_primary_key[0])


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
    positions = {row.id: row for row in transaction.rows(_POSITIONS)}
    reached = {one: int(row.position) for one, row in positions.items()}
    if (
        cursor is None
        or cursor.keys() - positions.keys()
        or any(row.pruned_to > cursor.get(one, 0) for one, row in positions.items())
    ):
        return News(reached, complete=True, provider_ids=frozenset(), catalogue=True)
    known = {one: cursor.get(one, 0) for one in reached}
    told = _told_since(transaction, [one for one in reached if reached[one] > known[one]], known)
    return News(
        reached,
        complete=False,
        provider_ids=frozenset(row.object_id for row in told if row.kind == PROVIDER),
        catalogue=any(row.kind == CATALOGUE for row in told),
    )


def _told_since(transaction: ReadTransaction, advanced: Sequence[int], known: Cursor) -> list[Any]:
    """Return what some streams tell past the positions known of them."""
    found: list[Any] = []
    for some in chunks(advanced, _STREAMS_AT_ONCE):
        past = (sa.and_(feed.c.stream_id == one, feed.c.position > known[one]) for one in some)
        found += transaction.rows(sa.select(feed.c.kind, feed.c.object_id).where(sa.or_(*past)))
    return found


def prune(transaction: WriteTransaction, keep: timedelta) -> int:
    """Delete what was told longer ago than `keep`, and streams unused since; return the rows."""
    before = utc_now() - keep
    old = (
        sa.select(feed.c.stream_id, sa.func.max(feed.c.position).label("position"))
        .where(feed.c.created_at < before)
        .group_by(feed.c.stream_id)
        .order_by(feed.c.stream_id)
    )
    deleted = 0
    for row in transaction.rows(old):
        transaction.execute(
            sa.update(streams)
            .where(streams.c.id == row.stream_id, streams.c.pruned_to < row.position)
            .values(pruned_to=row.position)
        )
        deleted += transaction.execute(
            sa.delete(feed).where(
                feed.c.stream_id == row.stream_id, feed.c.position <= row.position
            )
        ).rowcount
    transaction.execute(sa.delete(streams).where(streams.c.used_at < before))
    return deleted
