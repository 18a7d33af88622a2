# SPDX-License-Identifier: Apache-2.0
"""Transactions as operations see them: statements with a deadline, and what is recorded in the feed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from treeclaim.model.changes import UsageChange
from treeclaim.model.deadlines import has_passed
from treeclaim.model.extension.news import ProviderEffect
from treeclaim.model.parts import EVERYTHING, Part
from treeclaim.model.stages import LOCKS, STATEMENTS, Stages
from treeclaim.store.database.compiled import CompiledStatement, Values
from treeclaim.store.database.driver import (
    DriverStatement,
    Listeners,
    StatementResult,
    send,
    send_together,
    sends_together,
)
from treeclaim.store.database.systems import extend_timeouts, now_of, system_of

Item = TypeVar("Item")

_ROWS_PER_PARTITION = 10_000
"""Rows of a large result that are in memory together."""

_LOOKED_AT_TOGETHER = 256
"""Items of a loop between two looks at the deadline."""

_ROWS_WRITTEN_TOGETHER = 5_000
"""Rows that are written by one statement. It takes some fifty milliseconds to make it of them."""

NAMES_PER_STATEMENT = 2_000
"""Most names in each list of a query that clients give. There are up to six lists; PostgreSQL and MariaDB
take 65,535 parameters, SQLite 32,766 at least."""

IDS_PER_STATEMENT = 500
"""Most values in one IN list; some databases limit the parameters of a statement."""


class ReadTransaction:
    """A transaction that reads.

    Attributes:
        now: Time of the transaction by the database's clock, naive UTC; ages of what is stored, and
            times that are stored, are by it alone.
    """

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        self.connection = connection
        self.now = now_of(connection)
        self._deadline = deadline
        self._listeners = Listeners.of(connection)

    def extend_timeouts(self) -> None:
        """Extend deadline and timeouts, for the rest of a transaction that reads everything.

        No statement begins after the time that one of them may take, so all end within twice that.

        Raises:
            DBAPIError: as for any statement.
        """
        self._deadline = extend_timeouts(self.connection)

    def _run(self, statement: Executable, values: Values | Sequence[Values]) -> CursorResult[Any]:
        """Execute a statement, unless the deadline has passed.

        Raises:
            DeadlineError: if it has.
            DBAPIError: what the database would not do.
        """
        self.check_deadline()
        return self.connection.execute(statement, values)

    def check_deadline(self) -> None:
        """Check that the deadline has not passed, before each statement and in each loop.

        Raises:
            DeadlineError: if it has passed.
        """
        if has_passed(self._deadline):
            raise DeadlineError

    def rows(self, statement: Executable | CompiledStatement, /, **values: Any) -> list[Any]:
        """Return all rows of a query; their values are attributes by column name."""
        if isinstance(statement, CompiledStatement):
            self.check_deadline()
            return self._send(statement.ready(self.connection.dialect, values)).rows
        return list(self._run(statement, values).all())

    def rows_in_chunks(
        self, statement: Executable | CompiledStatement, /, **lists: Sequence[Any]
    ) -> Iterator[Any]:
        """Yield the rows of a query, which is executed once for each chunk of its lists.

        Each of its parts, of which there may be several, finds the values of one list.
        """
        longest = max(map(len, lists.values()), default=0)
        for start in range(0, longest, IDS_PER_STATEMENT):
            end = start + IDS_PER_STATEMENT
            yield from self.rows(
                statement, **{name: items[start:end] for name, items in lists.items()}
            )

    def watched(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items of any number, and look at the deadline in between.

        Raises:
            DeadlineError: if it has passed.
        """
        for number, item in enumerate(items):
            if number % _LOOKED_AT_TOGETHER == 0:
                self.check_deadline()
            yield item

    def _send(self, ready: DriverStatement) -> StatementResult:
        return send(self.connection, ready, self._listeners)

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


class WriteTransaction(ReadTransaction):
    """A transaction that writes, and records what readers of the change feed must reload.

    Attributes:
        touched_providers: What it did to providers, by id: all whose image in a Forest has changed.
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
        self._later: list[_DeferredStatement] = []
        self._sends_together = sends_together(connection, self._listeners)
        first = system_of(connection).begin_writing
        if self._sends_together and first is not None:
            self.change_by(first)

    def execute(self, statement: Executable, /, **values: Any) -> CursorResult[Any]:
        """Execute a statement that writes."""
        return self._run(statement, values)

    def execute_each(self, statement: Executable, values: Iterable[dict[str, Any]]) -> None:
        """Execute a statement once for each set of values; nothing for none."""
        for sets in batches(values, _ROWS_WRITTEN_TOGETHER):
            self._run(statement, sets)

    def change(
        self, statement: CompiledStatement, /, *, rows: int | None = None, **values: Any
    ) -> None:
        """Execute a statement that writes, now or together with what follows; see `flush`.

        Args:
            statement: The statement.
            rows: How many rows it has to change; None for any number.
            **values: Its values.

        Raises:
            RetryTransactionError: if it changes another number of rows; so may what follows.
            DBAPIError: what the database would not do; so may what follows.
        """
        self.change_by(statement.ready(self.connection.dialect, values), rows)

    def change_each(self, statement: CompiledStatement, values: Iterable[dict[str, Any]]) -> None:
        """Execute a statement as `change` does, once for each set of values; nothing for none."""
        for sets in batches(values, _ROWS_WRITTEN_TOGETHER):
            self.change_by(statement.ready_each(self.connection.dialect, sets))

    def change_by(
        self,
        ready: DriverStatement,
        rows: int | None = None,
        otherwise: type[Exception] | None = None,
    ) -> None:
        """Execute, as `change` does, what is ready for the driver.

        Args:
            ready: The statement.
            rows: How many rows it has to change; None for any number.
            otherwise: Raised if it changes another number, in place of `RetryTransactionError`.
        """
        self.check_deadline()
        later = _DeferredStatement(ready, rows, otherwise or RetryTransactionError)
        if self._sends_together:
            self._later.append(later)
        else:
            later.check(super()._send(ready))

    def flush(self) -> None:
        """Execute what was left for later: where one round trip takes several statements.

        Whatever asks the database for something does so too, so that statements keep their order.

        Raises:
            RetryTransactionError, DBAPIError: as `change`.
        """
        self._flush_with(())

    def _flush_with(self, queries: Sequence[DriverStatement]) -> list[StatementResult]:
        """Execute what was left for later, and queries after that; return what these found."""
        later, self._later = self._later, []
        every = [*(statement.ready for statement in later), *queries]
        if len(every) > 1:
            sent = send_together(self.connection, every, self._listeners)
        else:
            sent = [super(WriteTransaction, self)._send(ready) for ready in every]
        for statement, done in zip(later, sent, strict=False):
            statement.check(done)
        return sent[len(later) :]

    def _send(self, ready: DriverStatement) -> StatementResult:
        if not ready.is_locking:
            return self._flush_with([ready])[0]
        former = self._stages.enter(LOCKS)
        try:
            return self._flush_with([ready])[0]
        finally:
            self._stages.enter(former)

    def _run(self, statement: Executable, values: Values | Sequence[Values]) -> CursorResult[Any]:
        self.flush()
        return super()._run(statement, values)

    def touch_providers(
        self, ids: Iterable[int], parts: Part = EVERYTHING, *, tree: str | None = None
    ) -> None:
        """Record for the feed that these providers have changed.

        Args:
            ids: Which.
            parts: What of them, at least.
            tree: Uuid of the root that they had before, where they are moved to another tree.
        """
        for provider_id in ids:
            touched = ProviderEffect(parts, tree=tree)
            if earlier := self.touched_providers.get(provider_id):
                touched = ProviderEffect(earlier.parts | parts, earlier.uuid, earlier.tree or tree)
            self.touched_providers[provider_id] = touched

    def touch_usage(self, provider_id: int, change: UsageChange) -> None:
        """Record for the feed what claims changed of a provider.

        If this transaction changes it in other ways too, readers load it as a whole.
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


@dataclass(frozen=True, slots=True)
class _DeferredStatement:
    """A statement that is left for later, how many rows it has to change, and the error if not."""

    ready: DriverStatement
    rows: int | None
    otherwise: type[Exception]

    def check(self, sent: StatementResult) -> None:
        """Check how many rows were changed.

        Raises:
            Exception: `otherwise`.
        """
        if self.rows is not None and sent.rowcount != self.rows:
            raise self.otherwise


Key = tuple[int, int]
"""An inventory: id of its provider, id of its class."""


class RetryTransactionError(Exception):
    """A concurrent change made the transaction's reads stale; it must run again."""


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
