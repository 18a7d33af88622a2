# SPDX-License-Identifier: Apache-2.0
"""Transactions as operations see them: statements with a deadline, and what the feed is told."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any, TypeVar

from sqlalchemy import Executable
from sqlalchemy.engine import Connection, CursorResult

from treeclaim.model.changes import UsageChange
from treeclaim.model.extension.news import EVERYTHING, Part, Touched
from treeclaim.store.database.compiled import CompiledStatement, Values
from treeclaim.store.database.dialects import session_timeouts

Item = TypeVar("Item")

_ROWS_PER_PARTITION = 10_000
"""Rows of a large result that are in memory together."""

IDS_PER_STATEMENT = 500
"""Most values in one IN list; some databases limit the parameters of a statement."""


class ReadTransaction:
    """A transaction that reads."""

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        self.connection = connection
        self._deadline = deadline

    def extend_timeouts(self) -> None:
        """Lift the deadline and extend the timeouts, for the rest of a transaction that reads all.

        Raises:
            DBAPIError: as for any statement.
        """
        self._deadline = None
        session_timeouts.extend_timeouts(self.connection)

    def _run(self, statement: Executable, values: Values | Sequence[Values]) -> CursorResult[Any]:
        """Execute a statement, unless the deadline has passed.

        Raises:
            DeadlineError: if it has.
            DBAPIError: what the database would not do.
        """
        self._require_time()
        return self.connection.execute(statement, values)

    def _require_time(self) -> None:
        """Begin no statement after the deadline.

        Raises:
            DeadlineError: if it has passed.
        """
        if self._deadline is not None and monotonic() > self._deadline:
            raise DeadlineError

    def rows(self, statement: Executable | CompiledStatement, /, **values: Any) -> list[Any]:
        """Return all rows of a query; their values are attributes by column name."""
        if isinstance(statement, CompiledStatement):
            self._require_time()
            return statement.rows(self.connection, values)
        return list(self._run(statement, values).all())

    def each(self, statement: Executable) -> Iterator[Any]:
        """Yield the rows of a query whose result is as large as the database."""
        for partition in self._run(statement, {}).partitions(_ROWS_PER_PARTITION):
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
        now: Time of the transaction, naive UTC, for `created_at` and `updated_at`.
        touched_providers: What it did to providers, by id: all whose image in a Forest has changed.
        touched_catalogue: True if a trait or resource class was created, deleted or renamed.
    """

    def __init__(self, connection: Connection, deadline: float | None = None) -> None:
        super().__init__(connection, deadline)
        self.now = utc_now()
        self.touched_providers: dict[int, Touched] = {}
        self.touched_catalogue = False

    def execute(self, statement: Executable, /, **values: Any) -> CursorResult[Any]:
        """Execute a statement that writes."""
        return self._run(statement, values)

    def change(self, statement: CompiledStatement, /, **values: Any) -> int:
        """Execute a statement that writes; return how many rows it has changed."""
        self._require_time()
        return statement.change(self.connection, values)

    def execute_each(
        self, statement: Executable | CompiledStatement, values: Iterable[dict[str, Any]]
    ) -> None:
        """Execute a statement once for each set of values; nothing for none."""
        sets = list(values)
        if not sets:
            return
        if isinstance(statement, CompiledStatement):
            self._require_time()
            statement.change_each(self.connection, sets)
        else:
            self._run(statement, sets)

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
            known = self.touched_providers.get(provider_id, Touched(parts))
            self.touched_providers[provider_id] = Touched(
                known.parts | parts, known.uuid, known.tree or tree
            )

    def touch_usage(self, provider_id: int, change: UsageChange) -> None:
        """Record for the feed what claims changed of a provider.

        If this transaction changes it in other ways too, readers load it as a whole.
        """
        known = self.touched_providers.get(provider_id)
        if known is None:
            self.touched_providers[provider_id] = Touched(Part.ALLOCATIONS, usage=change)
        elif known.usage is None:
            self.touch_providers([provider_id], Part.ALLOCATIONS)
        else:
            self.touched_providers[provider_id] = Touched(
                Part.ALLOCATIONS, usage=known.usage.and_also(change)
            )

    def touch_deleted(self, provider_id: int, uuid: str, tree: str) -> None:
        """Record for the feed that a provider is gone; `tree` is the uuid of its root."""
        self.touched_providers[provider_id] = Touched(EVERYTHING, uuid, tree)

    def touch_catalogue(self) -> None:
        """Record for the feed that traits or resource classes have changed."""
        self.touched_catalogue = True


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


def utc_now() -> datetime:
    """Return the present time as the tables hold it: naive UTC."""
    return datetime.now(UTC).replace(tzinfo=None)


def seconds(*times: datetime | str | None) -> float:
    """Return the first time that is known, in seconds since the epoch; 0 if none is."""
    for given in times:
        if given is not None:
            # SQLite's driver, below SQLAlchemy, has them as text.
            time = datetime.fromisoformat(given) if isinstance(given, str) else given
            return time.replace(tzinfo=UTC).timestamp()
    return 0.0


def chunks(items: Sequence[Item], size: int = IDS_PER_STATEMENT) -> Iterator[Sequence[Item]]:
    """Split ids or names into pieces that fit into one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
