# SPDX-License-Identifier: Apache-2.0
"""Appends the touched providers of each commit to the change feed, in streams.

Problem. The numbers of one sequence do not follow the order of commits: a smaller number may become
visible after a larger one, and a reader that remembers the largest number would miss it. A lock
around the sequence would order it, but all writers of a cloud would then wait for each other's disk.

Solution. Each writer has a stream: a row in `treeclaim_streams`. Each transaction advances the position
of its stream, in the same commit as its changes. One transaction at a time uses a stream, so the
order of positions in a stream is the order of commits. A reader remembers a position for each stream.
If the position of a stream is greater, the feed contains all rows in between, because they were
committed together with the position. Writers never wait for each other, in any number of processes.

Identity. The identity of a stream is random and, unlike its id, never reused. Its owner advances it
only from the position that the owner itself has reached, and discards it if that position is unknown.
An identity with a position therefore names one commit for ever, even if a database returns to an
earlier state: the owner discards a stream that went back, and no other process advances it.

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
from treeclaim.store.database.failures import Failure, classify_failure
from treeclaim.store.database.transactions import RetryTransactionError, WriteTransaction
from treeclaim.store.feed.rows import CATALOGUE, FORMAT, PROVIDER, write_amounts
from treeclaim.store.schema.tables import feed, new_identity, streams

_ROLLED_BACK = {Failure.CONFLICT, Failure.LOCK_TIMEOUT}
"""Failures after which the transaction is certainly rolled back."""

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
    """The streams of one process, one for each concurrent transaction; must not be used after a fork.

    Attributes:
        created: Number of streams that the pool has lent for the first time.
    """

    def __init__(self) -> None:
        self.created = 0
        self._lock = threading.Lock()
        self._idle: list[Stream] = []

    @contextmanager
    def lend(self) -> Iterator[Stream]:
        """Lend a stream to one transaction.

        The stream returns to the pool after a commit or a reported rollback, such as a deadlock.
        After any other error the outcome of the transaction is unknown, so the stream is discarded.
        If it cannot be advanced, all idle streams are discarded too: they may be closed as well.
        """
        with self._lock:
            if self._idle:
                stream = self._idle.pop()
            else:
                stream = Stream()
                self.created += 1
        try:
            yield stream
        except LostStreamError:
            with self._lock:
                self._idle.clear()
            raise
        except DBAPIError as error:
            if classify_failure(error) in _ROLLED_BACK and not error.connection_invalidated:
                self._return(stream)
            raise
        self._return(stream)

    def _return(self, stream: Stream) -> None:
        with self._lock:
            self._idle.append(stream)


def append(transaction: WriteTransaction, stream: Stream) -> Stream:
    """Append the changes of a transaction; return the stream after the commit.

    Raises:
        LostStreamError: if the stream cannot be advanced; the flush of the transaction may raise it too.
    """
    stream = _create(transaction) if stream.id is None else _advance(transaction, stream)
    touched = [
        (PROVIDER, provider_id, effect)
        for provider_id, effect in sorted(
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
                "parts": int(effect.parts),
                "uuid": effect.uuid,
                "tree": effect.tree,
                "amounts": write_amounts(effect.usage),
            }
            for kind, object_id, effect in touched
        ),
    )
    return stream


def _advance(transaction: WriteTransaction, stream: Stream) -> Stream:
    """Advance a stream.

    Raises:
        LostStreamError: if it was closed, or its position differs from the one of its owner. The
            database may also have been restored to an earlier state.
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
    transaction.change_ready(ready, 1, LostStreamError)
    return Stream(stream.id, stream.identity, position)


def _create(transaction: WriteTransaction) -> Stream:
    identity = new_identity()
    result = transaction.execute(
        _NEW_STREAM, identity=identity, position=1, pruned_to=0, used_at=transaction.now
    )
    if not result.inserted_primary_key:
        raise RetryTransactionError
    return Stream(int(result.inserted_primary_key[0]), identity, 1)
