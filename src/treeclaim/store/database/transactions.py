# SPDX-License-Identifier: Apache-2.0
"""Transactions of operations: statements with a deadline, and records for the change feed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from treeclaim.model.changes import UsageChange
from treeclaim.model.extension.news import ProviderEffect
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.model.timing import LOCKS, STATEMENTS, Stages, has_passed
from treeclaim.store.database.compiled import CompiledStatement, Values
from treeclaim.store.database.driver import (
    DriverStatement,
    StatementResult,
    can_pipeline,
    send,
    send_together,
)
from treeclaim.store.database.systems import extend_timeouts, now_of

Item = TypeVar("Item")

_ROWS_PER_PARTITION = 10_000
"""Rows of a large result that are in memory together."""

_ITEMS_PER_CHECK = 256
"""Items of a loop between two checks of the deadline."""

_ROWS_PER_STATEMENT = 5_000
"""Rows that one statement writes. The statement takes some fifty milliseconds to make."""

NAMES_PER_STATEMENT = 2_000
"""Most names in each list of a query that clients give. There are up to six lists; PostgreSQL and MariaDB
take 65,535 parameters, SQLite 32,766 at least."""

IDS_PER_STATEMENT = 500
"""Most values in one IN list; some databases limit the parameters of a statement."""


class ReadTransaction:
    """A transaction that reads.

    Attributes:
        now: Time of the transaction by the database's clock, naive UTC. Stored times, and the ages of
            stored rows, follow it alone.
    """

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        self.connection = connection
        self.now = now_of(connection)
        self._deadline = deadline

    def extend_timeouts(self) -> None:
        """Extend deadline and timeouts, for the rest of a transaction that reads everything.

        No statement begins after the time that a statement may take, so all end within twice that time.
        """
        self._deadline = extend_timeouts(self.connection)

    def _run(self, statement: Executable, values: Values) -> CursorResult[Any]:
        """Execute a statement, unless the deadline has passed."""
        self.check_deadline()
        return self.connection.execute(statement, values)

    def check_deadline(self) -> None:
        """Raise `DeadlineError` once the deadline has passed; called before each statement and in each loop."""
        if has_passed(self._deadline):
            raise DeadlineError

    def rows(self, statement: Executable | CompiledStatement, /, **values: Any) -> list[Any]:
        """Return all rows of a query, whose values are attributes by column name.

        Raises:
            DeadlineError: if the deadline has passed.
            DBAPIError: for an error of the database. All methods that execute a statement raise both.
        """
        if isinstance(statement, CompiledStatement):
            self.check_deadline()
            return self._send(statement.ready(self.connection.dialect, values)).rows
        return list(self._run(statement, values).all())

    def rows_in_chunks(
        self, statement: Executable | CompiledStatement, /, **lists: Sequence[Any]
    ) -> Iterator[Any]:
        """Yield the rows of a query, which is executed once for each chunk of its lists.

        Each part of a UNION finds the values of its own list.
        """
        longest = max(map(len, lists.values()), default=0)
        for start in range(0, longest, IDS_PER_STATEMENT):
            end = start + IDS_PER_STATEMENT
            yield from self.rows(
                statement, **{name: items[start:end] for name, items in lists.items()}
            )

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, and check the deadline in between."""
        for number, item in enumerate(items):
            if number % _ITEMS_PER_CHECK == 0:
                self.check_deadline()
            yield item

    def _send(self, ready: DriverStatement) -> StatementResult:
        return send(self.connection, ready)

    def each(self, statement: Executable) -> Iterator[Any]:
        """Yield the rows of a query whose result is as large as the database."""
        for partition in self._run(statement, {}).partitions(_ROWS_PER_PARTITION):
            self.check_deadline()
            yield from partition

    def row(self, statement: Executable, /, **values: Any) -> Any:
        """Return the first row of a query, None if there is none."""
        return self._run(statement, values).first()

    def scalar(self, statement: Executable, /, **values: Any) -> Any:
        """Return the first value of the first row, None if there is none."""
        return self._run(statement, values).scalar()


class RetryTransactionError(Exception):
    """A concurrent change made the transaction's reads stale; it must run again."""


class _DeferredStatement(NamedTuple):
    """A statement, the number of rows that it must change, and the error if it changes another number."""

    ready: DriverStatement
    rows: int | None
    error: type[Exception]


class WriteTransaction(ReadTransaction):
    """A transaction that writes, and records the changes for readers of the feed.

    Attributes:
        touched_providers: The effects on providers, by id: all whose image in a Forest has changed.
        touched_catalogue: True if a trait or resource class was created, deleted or renamed.
    """

    def __init__(
        self,
        connection: Connection,
        deadline: float | None = None,
        stages: Stages | None = None,
    ) -> None:
        super().__init__(connection, deadline)
        self._stages = stages or Stages(STATEMENTS)
        self.touched_providers: dict[int, ProviderEffect] = {}
        self.touched_catalogue = False
        self._deferred: list[_DeferredStatement] = []
        self._can_pipeline = can_pipeline(connection)

    def execute(self, statement: Executable, /, **values: Any) -> CursorResult[Any]:
        """Execute a statement that writes."""
        return self._run(statement, values)

    def change(
        self, statement: CompiledStatement, /, *, rows: int | None = None, **values: Any
    ) -> None:
        """Execute a statement that writes, now or together with later statements; see `flush`.

        Raises:
            RetryTransactionError: if it does not change the given number of rows; the next statement may raise
                this too.
        """
        self.change_by(statement.ready(self.connection.dialect, values), rows)

    def change_each(self, statement: CompiledStatement, values: Iterable[dict[str, Any]]) -> None:
        """Execute a statement as `change` does, once for each set of values."""
        for sets in batches(values, _ROWS_PER_STATEMENT):
            self.change_by(statement.ready_each(self.connection.dialect, sets))

    def change_by(
        self,
        ready: DriverStatement,
        rows: int | None = None,
        error: type[Exception] = RetryTransactionError,
    ) -> None:
        """Execute, as `change` does, a statement that is ready for the driver.

        Raises:
            RetryTransactionError: `error`, if it changes another number of rows.
        """
        self.check_deadline()
        self._deferred.append(_DeferredStatement(ready, rows, error))
        if not self._can_pipeline:
            self.flush()

    def flush(self) -> None:
        """Execute the deferred statements, where one round trip takes several.

        Each query and each statement of SQLAlchemy flushes first, so that statements keep their order.

        Raises:
            RetryTransactionError, DBAPIError: as `change`.
        """
        self._flush_with(())

    def _flush_with(self, queries: Sequence[DriverStatement]) -> list[StatementResult]:
        """Execute the deferred statements, and then queries; return the results of the queries."""
        deferred, self._deferred = self._deferred, []
        statements = [*(statement.ready for statement in deferred), *queries]
        if len(statements) > 1:
            results = send_together(self.connection, statements)
        else:
            results = [send(self.connection, ready) for ready in statements]
        for (_, rows, error), result in zip(deferred, results, strict=False):
            if rows is not None and result.rowcount != rows:
                raise error
        return results[len(deferred) :]

    def _send(self, ready: DriverStatement) -> StatementResult:
        former = self._stages.enter(LOCKS) if ready.is_locking else None
        try:
            return self._flush_with([ready])[0]
        finally:
            if former is not None:
                self._stages.enter(former)

    def _run(self, statement: Executable, values: Values) -> CursorResult[Any]:
        self.flush()
        return super()._run(statement, values)

    def touch_providers(
        self, ids: Iterable[int], parts: Part = EVERYTHING, *, tree: str | None = None
    ) -> None:
        """Record for the feed that these providers have changed, in these parts at least.

        `tree` is the uuid of the root that they had before, where they are moved to another tree.
        """
        for provider_id in ids:
            touched = ProviderEffect(parts, tree=tree)
            if earlier := self.touched_providers.get(provider_id):
                touched = ProviderEffect(earlier.parts | parts, earlier.uuid, earlier.tree or tree)
            self.touched_providers[provider_id] = touched

    def touch_usage(self, provider_id: int, change: UsageChange) -> None:
        """Record for the feed the change of a provider by claims.

        If this transaction changes the provider in other ways too, readers load it as a whole.
        """
        earlier = self.touched_providers.get(provider_id)
        if earlier is None:
            self.touched_providers[provider_id] = ProviderEffect(Part.ALLOCATIONS, usage=change)
        elif earlier.usage is None:
            self.touch_providers([provider_id], Part.ALLOCATIONS)
        else:
            self.touched_providers[provider_id] = ProviderEffect(
                Part.ALLOCATIONS, usage=earlier.usage.and_also(change)
            )

    def touch_deleted(self, provider_id: int, uuid: str, tree: str) -> None:
        """Record for the feed that a provider is gone; `tree` is the uuid of its root."""
        self.touched_providers[provider_id] = ProviderEffect(EVERYTHING, uuid, tree)

    def touch_catalogue(self) -> None:
        """Record for the feed that traits or resource classes have changed."""
        self.touched_catalogue = True


Key = tuple[int, int]
"""An inventory: id of its provider, id of its class."""


class PrerequisiteError(Exception):
    """A transaction needs another write that is committed before it begins again.

    For rows on which others would wait until this transaction ends, such as a unique name.

    Attributes:
        prerequisite: The other write; it does no harm if this transaction is then refused.
    """

    def __init__(self, prerequisite: Callable[[WriteTransaction], None]) -> None:
        super().__init__("another write must be committed first")
        self.prerequisite = prerequisite


class DeadlineError(Exception):
    """The deadline of a transaction has passed; none of its statements begins any more."""


def seconds(*times: datetime | str | None) -> float:
    """Return the first time that is known, in seconds since the epoch; 0 if none is."""
    for time_value in times:
        time = as_datetime(time_value)
        if time is not None:
            return time.replace(tzinfo=UTC).timestamp()
    return 0.0


def as_datetime(given: datetime | str | None) -> datetime | None:
    """Return a time as a driver gives it, naive UTC; SQLite's, below SQLAlchemy, has it as text."""
    return datetime.fromisoformat(given) if isinstance(given, str) else given


def chunks(items: Sequence[Item], size: int = IDS_PER_STATEMENT) -> Iterator[Sequence[Item]]:
    """Split ids or names into pieces that fit into one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield this many items at a time, each made when its turn comes."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
