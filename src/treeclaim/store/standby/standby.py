# SPDX-License-Identifier: Apache-2.0
"""Reads a snapshot of the standby that has all that the primary has, and nothing else.

A position of a stream names one commit for ever (decision 0011). So a snapshot in which all streams
have come at least as far as on the primary, when the reader came, shows every write that was committed
before. And one in which they have come no further than on the primary now shows no commit that the
primary may still lose: with synchronous replication a standby shows it first. No setting of the
replication is relied on. Decision 0030 has the reasons.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from math import inf
from time import monotonic
from typing import TypeVar

from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from treeclaim import metrics
from treeclaim.model.changes import Changes, Cursor, Positions
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store.database.connecting.connections import connected
from treeclaim.store.database.failures.kinds import Failure, cause_of, failure_of
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.unread import LoadRequired, positions_by
from treeclaim.store.standby.breaker import CircuitBreaker
from treeclaim.store.standby.servers import (
    HURRY_SECONDS,
    StandbyProbe,
    hurry,
    poller_of,
    positions_on,
    take_time,
)

Result = TypeVar("Result")

CATCH_UP_SECONDS = 0.2
"""Seconds that a reader waits for the standby. One that keeps up is some milliseconds behind."""

_PAUSES = (0.001, 0.002, 0.004, 0.008, 0.016)
"""Seconds between two looks how far a server has come; the last one again and again."""

NO_STANDBY = "it is not a standby (any more), or has nothing of this database"
BEHIND = "it is behind by more than a reader waits"
AHEAD = (
    "it shows commits that the primary does not: the primary waits for another standby, or has been "
    "restored"
)

_PASSING = {Failure.CONFLICT, Failure.POOL_TIMEOUT}
"""Failures that say nothing of the next read: what the standby applies took away rows of this snapshot,
or others have all connections."""


class UnfitError(Exception):
    """The standby cannot be read from now, the primary has to be asked; the message says why."""


class Standby:
    """The standby of a database; threads may share it.

    Args:
        engine: The engine of the standby; its transactions read one snapshot.
        primary: Looks at the feed of the primary.
    """

    def __init__(self, engine: Engine, primary: Probe) -> None:
        self._engine = engine
        self._primary = primary
        self._statement = positions_on(engine)
        self._probe = StandbyProbe(engine)
        self._poller = poller_of(engine, self._probe)
        self._breaker = CircuitBreaker(self)

    @property
    def is_tripped(self) -> bool:
        """Tell whether it is left alone for now."""
        return self._breaker.is_open

    def read(
        self,
        operation: Callable[[ReadTransaction], Result],
        deadline: float,
        reached: Positions | None,
    ) -> Result:
        """Run an operation in a snapshot that has what the primary has; at most once.

        Args:
            operation: Reads nothing but what the feed covers.
            deadline: On the monotonic clock; no statement begins later.
            reached: What the snapshot has to have, if the caller knows how far the primary had come
                when it was asked.

        Raises:
            UnfitError: if the primary has to be asked.
            StoreUnavailableError: if the primary does not answer.
            DeadlineError, TreeclaimError: as the operation.
            SQLAlchemyError: if a statement of the operation took too long.
        """
        try:
            result = self._read(operation, deadline, reached)
        except UnfitError:
            metrics.STANDBY_READS.labels("primary").inc()
            raise
        metrics.STANDBY_READS.labels("standby").inc()
        return result

    def look(self, cursor: Cursor, reached: Positions) -> Changes | LoadRequired:
        """Return what the primary had when it was asked, and a reader has not; or that it is to be read.

        Args:
            cursor: How far the reader has come.
            reached: How far the primary had, which is another position.

        Raises:
            UnfitError: if the primary has to be asked.
            StoreUnavailableError: if the primary does not answer.
        """
        if self._breaker.is_open:
            raise UnfitError
        try:
            found = self._polled(cursor, reached)
        except UnfitError as unfit:
            self._breaker.trip(str(unfit))
            metrics.STANDBY_READS.labels("primary").inc()
            raise
        if not isinstance(found, LoadRequired):
            metrics.STANDBY_READS.labels("standby").inc()
        return found

    def _polled(self, cursor: Cursor, reached: Positions) -> Changes | LoadRequired:
        """Return what one poll shows as soon as it is all that is wanted, or that it is to be loaded.

        Raises:
            UnfitError: if it is not in time, or the standby does not answer.
            StoreUnavailableError: if the primary does not.
        """
        pauses = self._pauses()
        while True:
            try:
                found = self._poller.since(cursor)
            except StoreUnavailableError as error:
                raise UnfitError(str(error)) from error
            if isinstance(found, LoadRequired):
                return found
            if found is not None and covers(found.cursor.positions, reached):
                self._await_primary(found.cursor.positions, reached, pauses)
                return found
            if not next(pauses, False):
                raise UnfitError(BEHIND)

    def _read(
        self,
        operation: Callable[[ReadTransaction], Result],
        deadline: float,
        reached: Positions | None,
    ) -> Result:
        if self._breaker.is_open:
            raise UnfitError
        try:
            with self._snapshot(deadline, reached) as transaction:
                return operation(transaction)
        except UnfitError as unfit:
            self._breaker.trip(str(unfit))
            raise
        except SQLAlchemyError as error:
            failure = failure_of(error)
            if failure is Failure.STATEMENT_TIMEOUT:
                # The primary would take as long.
                raise
            if failure not in _PASSING:
                self._breaker.trip(cause_of(error))
            raise UnfitError from error

    @contextmanager
    def _snapshot(self, deadline: float, reached: Positions | None) -> Iterator[ReadTransaction]:
        """Give a snapshot that has what the primary has.

        Raises:
            UnfitError: if there is none in time.
            SQLAlchemyError: if the standby does not answer.
            StoreUnavailableError: if the primary does not.
        """
        wanted = positions_by(self._primary) if reached is None else reached
        pauses = self._pauses()
        while True:
            with connected(self._engine) as connection:
                hurry(connection)
                with connection.begin():
                    transaction = ReadTransaction(connection, deadline)
                    rows = transaction.rows(self._statement)
                    shown = {row.identity: row.position for row in rows}
                    # Without streams, databases could not be told apart.
                    if wanted and covers(shown, wanted):
                        self._await_primary(shown, wanted, pauses)
                        take_time(connection)
                        yield transaction
                        return
            if not shown:
                raise UnfitError(NO_STANDBY)
            if not next(pauses, False):
                raise UnfitError(BEHIND)

    def _await_primary(self, shown: Positions, known: Positions, pauses: Iterator[bool]) -> None:
        """Wait until the primary shows all commits that a snapshot of the standby has.

        Raises:
            UnfitError: if it does not in time.
        """
        while not covers(known, shown):
            known = positions_by(self._primary)
            if not covers(known, shown) and not next(pauses, False):
                raise UnfitError(AHEAD)

    def _pauses(self) -> Iterator[bool]:
        """Pause at each step, a little longer each time, while there is time."""
        until = monotonic() + CATCH_UP_SECONDS
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            if monotonic() >= until:
                return
            self._breaker.closing.wait(pause)
            yield True

    def fault(self) -> str | None:
        """Return why it cannot be read from now; None if it can."""
        try:
            with self._snapshot(inf, None):
                return None
        except UnfitError as unfit:
            return str(unfit)
        except SQLAlchemyError as error:
            return cause_of(error)
        except StoreUnavailableError as error:
            return str(error)

    def close(self) -> None:
        """Close all connections."""
        self._breaker.close(2 * HURRY_SECONDS)
        self._probe.close()
        self._engine.dispose()


def covers(reached: Positions, wanted: Positions) -> bool:
    """Tell whether all streams have come as far as wanted."""
    return all(reached.get(stream, 0) >= position for stream, position in wanted.items())
