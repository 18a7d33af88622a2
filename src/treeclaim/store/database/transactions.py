# SPDX-License-Identifier: Apache-2.0
"""Transactions: short, retried where that helps, and told to the change feed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any, TypeVar

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from treeclaim.store.database import patience
from treeclaim.store.database.ready import Ready, Values

Item = TypeVar("Item")

_ROWS_AT_ONCE = 10_000
"""Rows of a large result that are in memory together."""

IDS_AT_ONCE = 500
"""Most values in one IN list; some databases have a limit."""


class ReadTransaction:
    """A consistent picture of the database."""

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        self.connection = connection
        self._deadline = deadline

    def take_time(self) -> None:
        """Let the rest of the transaction read, or look after, everything: without its deadline.

        Raises:
            DBAPIError: as for any statement.
        """
        self._deadline = None
        patience.take_time(self.connection)

    def _run(
        self, statement: Executable | Ready, values: Values | Sequence[Values]
    ) -> CursorResult[Any]:
        """Execute a statement, unless it is too late to begin.

        Raises:
            DeadlineError: if it is.
            DBAPIError: what the database would not do.
        """
        if self._deadline is not None and monotonic() > self._deadline:
            raise DeadlineError
        if isinstance(statement, Ready):
            return statement.execute(self.connection, values)
        return self.connection.execute(statement, values)

    def rows(self, statement: Executable | Ready, /, **values: Any) -> list[Any]:
        """Return all rows of a query; their values are attributes by column name."""
        return list(self._run(statement, values).all())

    def each(self, statement: Executable) -> Iterator[Any]:
        """Yield the rows of a query whose result is as large as the database."""
        for some in self._run(statement, {}).partitions(_ROWS_AT_ONCE):
            yield from some

    def row(self, statement: Executable, /, **values: Any) -> Any:
        """Return the first row of a query, None if there is none."""
        return self._run(statement, values).first()

    def scalar(self, statement: Executable, /, **values: Any) -> Any:
        """Return the first value of the first row, None if there is none."""
        return self._run(statement, values).scalar()


class WriteTransaction(ReadTransaction):
    """Changes that come true together, or not at all.

    Attributes:
        now: Time of the transaction, naive UTC, for `created_at` and `updated_at`.
        touched_providers: Ids of the providers whose picture in a Forest has changed.
        touched_catalogue: True if a trait or resource class came, went or was renamed.
    """

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        super().__init__(connection, deadline)
        self.now = utc_now()
        self.touched_providers: set[int] = set()
        self.touched_catalogue = False

    def execute(self, statement: Executable | Ready, /, **values: Any) -> CursorResult[Any]:
        """Execute a statement that changes something."""
        return self._run(statement, values)

    def execute_each(
        self, statement: Executable | Ready, values: Iterable[dict[str, Any]]
    ) -> None:
        """Execute a statement once for each set of values."""
        every = list(values)
        if every:
            self._run(statement, every)

    def touch_providers(self, ids: Iterable[int]) -> None:
        """Say that these providers have changed or are gone."""
        self.touched_providers.update(ids)

    def touch_catalogue(self) -> None:
        """Say that traits or resource classes have changed."""
        self.touched_catalogue = True


class RetryTransactionError(Exception):
    """Something changed under a transaction's feet; it must be run again."""


class PrepareFirstError(Exception):
    """A transaction needs something that is to be committed before it begins again.

    What others would wait for, were it held until this one ends, such as a unique name.

    Attributes:
        prepare: A write of its own; it must be harmless if the transaction is refused then.
    """

    def __init__(self, prepare: Callable[[WriteTransaction], None]) -> None:
        super().__init__("something must be committed first")
        self.prepare = prepare


class DeadlineError(Exception):
    """A transaction has used up its time; none of its statements begins any more."""


def utc_now() -> datetime:
    """Return the present time as the tables hold it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def seconds(*times: datetime | None) -> float:
    """Return the first time that is known, in seconds since the epoch; 0 if none is."""
    for time in times:
        if time is not None:
            return time.replace(tzinfo=UTC).timestamp()
    return 0.0


def chunks(items: Sequence[Item], most: int = IDS_AT_ONCE) -> Iterator[Sequence[Item]]:
    """Split ids or names into pieces that fit into one statement."""
    for start in range(0, len(items), most):
        yield items[start : start + most]
