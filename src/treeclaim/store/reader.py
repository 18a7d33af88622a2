# SPDX-License-Identifier: Apache-2.0
"""Runs what only reads, in one snapshot each, and returns the changes since a cursor."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from treeclaim.model.changes import Changes, Cursor, Positions
from treeclaim.store.database.engine import connected, make_engine
from treeclaim.store.database.failures import Failure, Outages, failure_of
from treeclaim.store.database.systems import DatabaseSettings, system_of
from treeclaim.store.database.transactions import DeadlineError, ReadTransaction
from treeclaim.store.feed.polling import FeedPoller, LoadRequiredError
from treeclaim.store.feed.probe import Probe
from treeclaim.store.feed.unread import changes_since

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Reader:
    """The database as far as it is read; threads may share it.

    Attributes:
        engine: Its connections.
        timeouts: The timeouts of its waits.
        outages: Logs when the database fails, and when it answers again.
    """

    def __init__(self, settings: DatabaseSettings) -> None:
        self.engine = make_engine(settings)
        self._reading = system_of(self.engine).for_reading(self.engine)
        self.timeouts = settings.timeouts
        self.outages = Outages()
        self._probe = Probe(self.engine, self.outages)
        self._poller = FeedPoller(self._probe, self.engine.dialect)

    def _deadline(self) -> float:
        return monotonic() + self.timeouts.write

    def read(
        self,
        operation: Callable[Concatenate[ReadTransaction, Arguments], Result],
        /,
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Run an operation that only reads, in one snapshot; again if the connection is lost once.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        deadline = self._deadline()
        is_repeated = False
        while True:
            try:
                with connected(self._reading) as connection, connection.begin():
                    result = operation(ReadTransaction(connection, deadline), *args, **kwargs)
            except DeadlineError as error:
                raise self.outages.late() from error
            except SQLAlchemyError as error:
                if is_repeated or failure_of(error) not in {Failure.CONFLICT, Failure.LOST}:
                    raise self.outages.refused(error) from error
                is_repeated = True
            else:
                self.outages.answered()
                return result

    def now(self) -> datetime:
        """Return the time by the database's clock, naive UTC.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        return self.read(lambda transaction: transaction.now)

    def changes(self, cursor: Cursor | None) -> Changes | None:
        """Return the changes committed since a cursor; None if there are none.

        If nothing is new, or nothing but claims, this costs one query over a few small rows, and one
        more if a few providers have changed otherwise. Everything else is read in one snapshot. So
        each transaction is seen whole or not at all.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        if cursor is None:
            return self.read(changes_since, None)
        with suppress(LoadRequiredError):
            return self._poller.since(cursor)
        return self.read(changes_since, cursor)

    def positions(self) -> Positions:
        """Return the position of each stream of the change feed.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        rows: Any = self._probe.rows("SELECT identity, position FROM treeclaim_streams")
        return dict(rows)

    def close(self) -> None:
        """Close all connections."""
        self._probe.close()
        self.engine.dispose()
