# SPDX-License-Identifier: Apache-2.0
"""Transactions: short, retried where that helps, and told to the change feed."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from treeclaim.store.database.ready import Ready

Item = TypeVar("Item")

_ROWS_AT_ONCE = 10_000
"""Rows of a large result that are in memory together."""

IDS_AT_ONCE = 500
"""Most values in one IN list; some databases have a limit."""


class ReadTransaction:
    """A consistent picture of the database."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, statement: Executable | Ready, /, **values: Any) -> list[Any]:
        """Return all rows of a query; their values are attributes by column name."""
        if isinstance(statement, Ready):
            return list(statement.execute(self.connection, values).all())
        return list(self.connection.execute(statement, values).all())

    def each(self, statement: Executable) -> Iterator[Any]:
        """Yield the rows of a query whose result is as large as the database."""
        for some in self.connection.execute(statement).partitions(_ROWS_AT_ONCE):
            yield from some

    def row(self, statement: Executable, /, **values: Any) -> Any:
        """Return the first row of a query, None if there is none."""
        return self.connection.execute(statement, values).first()

    def scalar(self, statement: Executable, /, **values: Any) -> Any:
        """Return the first value of the first row, None if there is none."""
        return self.connection.execute(statement, values).scalar()


class WriteTransaction(ReadTransaction):
    """Changes that come true together, or not at all.

    Attributes:
        now: Time of the transaction, naive UTC, for `created_at` and `updated_at`.
        touched_providers: Ids of the providers whose picture in a Forest has changed.
        touched_catalogue: True if a trait or resource class came, went or was renamed.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.now = utc_now()
        self.touched_providers: set[int] = set()
        self.touched_catalogue = False

    def execute(self, statement: Executable | Ready, /, **values: Any) -> CursorResult[Any]:
        """Execute a statement that changes something."""
        if isinstance(statement, Ready):
            return statement.execute(self.connection, values)
        return self.connection.execute(statement, values)

    def execute_each(
        self, statement: Executable | Ready, values: Iterable[dict[str, Any]]
    ) -> None:
        """Execute a statement once for each set of values."""
        every = list(values)
        if not every:
            return
        if isinstance(statement, Ready):
            statement.execute(self.connection, every)
        else:
            self.connection.execute(statement, every)

    def touch_providers(self, ids: Iterable[int]) -> None:
        """Say that these providers have changed or are gone."""
        self.touched_providers.update(ids)

    def touch_catalogue(self) -> None:
        """Say that traits or resource classes have changed."""
        self.touched_catalogue = True


class RetryTransactionError(Exception):
    """Something changed under a transaction's feet; it must be run again."""


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
