# SPDX-License-Identifier: Apache-2.0
"""Appends to the change feed: which providers each commit touched, in streams.

Problem. Numbers of one sequence do not follow the order of commits: a smaller one may become
visible after a larger one, and a reader that remembers the largest would miss it. A lock around
the sequence would order it, but then all writers of a cloud would wait for each other's disk.

Solution. Each writer has a stream: a row in `treeclaim_streams` whose position it advances in
every transaction, in the same commit as the changes themselves. A stream is used by
one transaction at a time, so within it the order of positions is the order of commits. A reader
remembers a position for each stream. If a stream's position is past that, the rows in between are
in the feed, all of them, because they were committed together with the position. No writer waits
for another, on any database, with any number of processes.

Identity. A stream's identity is drawn at random and never reused, as its id may be. Its owner
advances it only from the position that it has reached itself, and gives it up whenever it cannot
know what that is. So an identity with a position names one commit for ever, even if a database
goes back to an earlier state: the owner abandons a stream that went back, and nobody else
advances it.

`unread.py` reads the feed, `pruning.py` prunes it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from treeclaim.model.extension.news import ProviderEffect
from treeclaim.model.parts import EVERYTHING
from treeclaim.store.database.compiled import CompiledStatement, compile_insert
from treeclaim.store.database.failures import Failure, failure_of
from treeclaim.store.database.transactions import RetryTransactionError, WriteTransaction
from treeclaim.store.feed.rows import CATALOGUE, FORMAT, PROVIDER, amounts_text
from treeclaim.store.schema.tables import feed, new_identity, streams

_ROLLED_BACK = {Failure.CONFLICT, Failure.LOCK_TIMEOUT}
"""Failures after which certainly nothing was committed."""

_NEW_STREAM = sa.insert(streams)
_ADVANCE = CompiledStatement(
    sa.update(streams)
    .where(
        streams.c.id == sa.bindparam("stream"),
        streams.c.identity == sa.bindparam("known_as"),
        streams.c.position == sa.bindparam("old"),
    )
    .values(position=sa.bindparam("new"), used_at=sa.bindparam("at"))
)
_INSERT = compile_insert(feed)


@dataclass(slots=True)
class Stream:
    """A stream that this process owns.

    Attributes:
        id: Id of its row; None until its first transaction inserts it.
        identity: Distinguishes it from a later stream with the same id.
        position: Number of its last commit.
    """

    id: int | None = None
    identity: int = 0
    position: int = 0


class LostStreamError(Exception):
    """A stream cannot be advanced; the transaction has to run again with a new one."""


class StreamPool:
    """The streams of one process: as many as it has concurrent transactions. It must not be used after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Stream] = []

    @contextmanager
    def lend(self) -> Iterator[Stream]:
        """Lend a stream to one transaction.

        It comes back if the block ends well, or if the database says that it rolled back, as
        after a deadlock. After any other error nobody knows whether the transaction was
        committed, so the stream is given up, and the next one takes its place. If it cannot be
        advanced, all idle ones are given up with it: they may have been closed with it too.
        """
        stream = self._take()
        try:
            yield stream
        except LostStreamError:
            with self._lock:
                self._idle.clear()
            raise
        except DBAPIError as error:
            if failure_of(error) in _ROLLED_BACK and not error.connection_invalidated:
                self._give_back(stream)
            raise
        self._give_back(stream)

    def _take(self) -> Stream:
        with self._lock:
            return self._idle.pop() if self._idle else Stream()

    def _give_back(self, stream: Stream) -> None:
        with self._lock:
            self._idle.append(stream)


def append(transaction: WriteTransaction, stream: Stream) -> Stream:
    """Append what a transaction touched; return the stream as it is after the commit.

    Raises:
        LostStreamError: if the stream cannot be advanced; so may what follows.
    """
    stream = _create(transaction) if stream.id is None else _advance(transaction, stream)
    touched = [
        (PROVIDER, provider_id, what)
        for provider_id, what in sorted(
            transaction.touched_providers.items(), key=lambda item: item[0]
        )
    ]
    if transaction.touched_catalogue:
        touched.append((CATALOGUE, 0, ProviderEffect(EVERYTHING)))
    transaction.change_each(
        _INSERT,
        (
            {
                "stream_id": stream.id,
                "position": stream.position,
                "kind": kind,
                "object_id": object_id,
                "created_at": transaction.now,
                "format": FORMAT,
                "parts": int(what.parts),
                "uuid": what.uuid,
                "tree": what.tree,
                "amounts": amounts_text(what.usage),
            }
            for kind, object_id, what in touched
        ),
    )
    return stream


def _advance(transaction: WriteTransaction, stream: Stream) -> Stream:
    """Advance a stream.

    Raises:
        LostStreamError: if it was closed, or has another position than its owner knows. Both may
            also mean that the database was restored to an earlier state.
    """
    position = stream.position + 1
    values = {
        "stream": stream.id,
        "known_as": stream.identity,
        "old": stream.position,
        "new": position,
        "at": transaction.now,
    }
    ready = _ADVANCE.ready(transaction.connection.dialect, values)
    transaction.change_by(ready, 1, LostStreamError)
    return Stream(stream.id, stream.identity, position)


def _create(transaction: WriteTransaction) -> Stream:
    identity = new_identity()
    result = transaction.execute(
        _NEW_STREAM, identity=identity, position=1, pruned_to=0, used_at=transaction.now
    )
    if not result.inserted_primary_key:
        raise RetryTransactionError
    return Stream(int(result.inserted_primary_key[0]), identity, 1)
