# SPDX-License-Identifier: Apache-2.0
"""Transactions of operations: statements with a deadline, and the changes to record in the feed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import text
from sqlalchemy.engine import Connection

from treeclaim.model.changes import Cursor, ProviderEffect, UsageChange
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.model.timing import LOCKS, STATEMENTS, Stages, has_passed
from treeclaim.store.database.compiled import CompiledStatement, Values, compile_text
from treeclaim.store.database.driver import (
    DriverStatement,
    StatementResult,
    can_pipeline,
    send,
    send_together,
)
from treeclaim.store.database.failures import DeadlineError
from treeclaim.store.database.systems import extend_timeouts, read_clock

Item = TypeVar("Item")

Statement = CompiledStatement | str
"""A compiled statement, or portable SQL (see `compiled.py`)."""

_MAX_VIEWS = 3
"""Incomplete views of the change feed before a reader loads everything. A second view is complete unless the database
was damaged."""

_ROWS_PER_PARTITION = 10_000
"""Rows of a large result that are fetched at once."""

ROWS_PER_STATEMENT = 5_000
"""Rows that one statement writes. Building its parameters takes about 50 ms."""

NAMES_PER_STATEMENT = 2_000
"""Most names in each list of a query. A query has up to six lists; PostgreSQL and MariaDB accept 65,535
parameters, SQLite at least 32,766."""

IDS_PER_STATEMENT = 500
"""Most values in one IN list; some databases limit the parameters of a statement."""


class ReadTransaction:
    """A transaction that reads.

    Attributes:
        now: Beginning of the transaction by the database's clock, naive UTC. All stored times and
            ages follow this clock.
        floor: A cursor of the change feed that was read before the transaction; None without one.
    """

    def __init__(
        self,
        connection: Connection,
        deadline: float | None = None,
        floor: Cursor | None = None,
        earlier_views: int = 0,
    ) -> None:
        self.connection = connection
        self.now = read_clock(connection)
        self.floor = floor
        self._earlier_views = earlier_views
        self._deadline = deadline

    def require_another_view(self) -> None:
        """Raise `IncompleteViewError`, unless this is the last of `_MAX_VIEWS`."""
        if self._earlier_views < _MAX_VIEWS - 1:
            raise IncompleteViewError

    def extend_timeouts(self) -> None:
        """Extend deadline and timeouts for a load of everything, until the transaction ends.

        No statement begins after the extended statement timeout, so all end within twice that timeout.
        """
        self._deadline = extend_timeouts(self.connection)

    def _bind(self, statement: Statement, values: Values) -> DriverStatement:
        self.check_deadline()
        if isinstance(statement, str):
            statement = compile_text(statement)
        return statement.bind(self.connection.dialect, values)

    def check_deadline(self) -> None:
        """Raise `DeadlineError` once the deadline has passed; each statement and each long loop calls this."""
        if has_passed(self._deadline):
            raise DeadlineError("a transaction missed its deadline")

    def rows(self, statement: Statement, /, **values: Any) -> list[Any]:
        """Return the rows of a query as named tuples.

        Raises, as each method that executes a statement:
            DeadlineError: if the deadline has passed.
            DBAPIError: for an error of the database.
        """
        return self._send(self._bind(statement, values)).rows

    def rows_in_chunks(self, statement: Statement, /, **lists: Sequence[Any]) -> Iterator[Any]:
        """Execute a query once for each chunk of its lists, and yield the rows.

        The parts of a UNION may have different lists.
        """
        longest = max(map(len, lists.values()), default=0)
        for start in range(0, longest, IDS_PER_STATEMENT):
            end = start + IDS_PER_STATEMENT
            yield from self.rows(
                statement, **{name: items[start:end] for name, items in lists.items()}
            )

    def _send(self, statement: DriverStatement) -> StatementResult:
        return send(self.connection, statement)

    def each(self, sql: str) -> Iterator[Any]:
        """Yield the rows of a query whose result may be as large as the database."""
        self.check_deadline()
        for partition in self.connection.execute(text(sql)).partitions(_ROWS_PER_PARTITION):
            self.check_deadline()
            yield from partition

    def row(self, statement: Statement, /, **values: Any) -> Any:
        """Return the first row of a query; None for an empty result."""
        return next(iter(self.rows(statement, **values)), None)

    def scalar(self, statement: Statement, /, **values: Any) -> Any:
        """Return the first value of the first row; None for an empty result."""
        row = self.row(statement, **values)
        return None if row is None else row[0]


class IncompleteViewError(Exception):
    """The view of the transaction lacks a commit, or may lack one; the read must run again with a floor."""


class RetryTransactionError(Exception):
    """A concurrent change made the reads of the transaction stale; it must run again."""


class _DeferredStatement(NamedTuple):
    """A statement, and the number of rows that it must change; None for any number."""

    statement: DriverStatement
    rows: int | None


class WriteTransaction(ReadTransaction):
    """A transaction that writes, and collects its changes for the feed.

    Attributes:
        touched_providers: The changes of providers, by id.
        touched_catalogue: Whether a trait or resource class was created, deleted or renamed.
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
        self._deferred_statements: list[_DeferredStatement] = []
        self._can_pipeline = can_pipeline(connection)

    def execute(self, statement: Statement, /, **values: Any) -> StatementResult:
        """Execute a statement that writes at once."""
        return self._send(self._bind(statement, values))

    def change(self, statement: Statement, /, *, rows: int | None = None, **values: Any) -> None:
        """Execute a statement that writes, now or at the next `flush`.

        Raises:
            RetryTransactionError: if it does not change the number of `rows`; `flush` may raise this too.
        """
        self._defer(self._bind(statement, values), rows)

    def change_each(self, statement: Statement, values: Iterable[dict[str, Any]]) -> None:
        """Execute a statement as `change` does, once for each set of values."""
        if isinstance(statement, str):
            statement = compile_text(statement)
        for sets in chunks(list(values), ROWS_PER_STATEMENT):
            self.check_deadline()
            self._defer(statement.bind_each(self.connection.dialect, sets))

    def _defer(self, statement: DriverStatement, rows: int | None = None) -> None:
        self._deferred_statements.append(_DeferredStatement(statement, rows))
        if not self._can_pipeline:
            self.flush()

    def flush(self) -> None:
        """Execute the deferred statements by one round trip; each query does this first.

        Raises:
            RetryTransactionError, DBAPIError: as `change`.
        """
        self._flush_with(())

    def _flush_with(self, queries: Sequence[DriverStatement]) -> list[StatementResult]:
        """Execute the deferred statements, then the queries; return the results of the queries."""
        deferred_statements, self._deferred_statements = self._deferred_statements, []
        statements = [*(change.statement for change in deferred_statements), *queries]
        if len(statements) > 1:
            results = send_together(self.connection, statements)
        else:
            results = [send(self.connection, statement) for statement in statements]
        for (_, rows), result in zip(deferred_statements, results, strict=False):
            if rows is not None and result.rowcount != rows:
                raise RetryTransactionError
        return results[len(deferred_statements) :]

    def _send(self, statement: DriverStatement) -> StatementResult:
        former_stage = self._stages.enter(LOCKS) if statement.is_locking else None
        try:
            return self._flush_with([statement])[0]
        finally:
            if former_stage is not None:
                self._stages.enter(former_stage)

    def touch_providers(
        self, ids: Iterable[int], parts: Part = EVERYTHING, *, tree: str | None = None
    ) -> None:
        """Record for the feed changed parts of providers; `tree` is the uuid of the former root of moved ones."""
        for provider_id in ids:
            effect = ProviderEffect(parts, tree=tree)
            if earlier_effect := self.touched_providers.get(provider_id):
                effect = ProviderEffect(
                    earlier_effect.parts | parts, earlier_effect.uuid, earlier_effect.tree or tree
                )
            self.touched_providers[provider_id] = effect

    def touch_usage(self, provider_id: int, change: UsageChange) -> None:
        """Record for the feed a change of a provider by claims.

        If this transaction changes the provider in another way too, readers load the provider.
        """
        earlier_effect = self.touched_providers.get(provider_id)
        if earlier_effect is None:
            self.touched_providers[provider_id] = ProviderEffect(Part.ALLOCATIONS, usage=change)
        elif earlier_effect.usage is None:
            self.touch_providers([provider_id], Part.ALLOCATIONS)
        else:
            self.touched_providers[provider_id] = ProviderEffect(
                Part.ALLOCATIONS, usage=earlier_effect.usage.plus(change)
            )

    def touch_deleted(self, provider_id: int, uuid: str, tree: str) -> None:
        """Record for the feed the deletion of a provider; `tree` is the uuid of its root."""
        self.touched_providers[provider_id] = ProviderEffect(EVERYTHING, uuid, tree)

    def touch_catalogue(self) -> None:
        """Record for the feed a change of traits or resource classes."""
        self.touched_catalogue = True


Key = tuple[int, int]
"""An inventory: id of its provider, id of its class."""


class PrerequisiteError(Exception):
    """A separate transaction must commit before this one runs again.

    It writes rows, such as a unique name, that would block other transactions until this one ends.

    Attributes:
        prerequisite: The operation of that transaction; it is harmless if this one is then refused.
    """

    def __init__(self, prerequisite: Callable[[WriteTransaction], None]) -> None:
        super().__init__("another write must be committed first")
        self.prerequisite = prerequisite


def to_timestamp(*times: datetime | str | None) -> float:
    """Return the first time that is not None, as a POSIX timestamp; 0 if all are None."""
    for time_value in times:
        time = as_datetime(time_value)
        if time is not None:
            return time.replace(tzinfo=UTC).timestamp()
    return 0.0


def as_datetime(value: datetime | str | None) -> datetime | None:
    """Convert a time of a driver, naive UTC; SQLite's driver returns text."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def chunks(items: Sequence[Item], size: int = IDS_PER_STATEMENT) -> Iterator[Sequence[Item]]:
    """Split ids or names into pieces that fit into one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
