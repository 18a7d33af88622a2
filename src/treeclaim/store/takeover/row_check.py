# SPDX-License-Identifier: Apache-2.0
"""Checks for invalid rows of a database to be taken over, each kind with its remedy."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.store.reading.consumers import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.schema.tables import (
    ROWS_OF_PROVIDERS,
    allocations,
    consumers,
    inventories,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
    users,
)
from treeclaim.store.takeover.findings import Finding, Level, passed

_BACK_UP = "Make a backup first."
_MIGRATE = "Run 'treeclaim db online_data_migrations'."


def findings(connection: Connection, present: Mapping[str, AbstractSet[str]]) -> Iterator[Finding]:
    """Check the rows of those tables that are complete.

    Args:
        connection: To the database.
        present: Names of the present columns by table.
    """
    for rule in _RULES:
        if all(
            set(table.columns.keys()) <= present.get(table.name, set()) for table in rule.tables
        ):
            yield rule.finding(connection)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A kind of invalid rows.

    Attributes:
        subject: The table.
        level: Severity of such rows.
        text: What is invalid about them; follows their number.
        remedy: What to do.
        tables: The tables that the query needs.
        count: Makes the query for the number of such rows.
    """

    subject: str
    level: Level
    text: str
    remedy: str
    tables: tuple[sa.Table, ...]
    count: Callable[[], sa.Select[Any]]

    def finding(self, connection: Connection) -> Finding:
        """Count the invalid rows, and return what follows from their number."""
        number = connection.execute(self.count()).scalar_one()
        if not number:
            return passed(self.subject, f"none {self.text}")
        return Finding(self.level, self.subject, f"{number} {self.text}", self.remedy)


def _without(column: sa.Column[int], target: sa.Column[int]) -> sa.Select[Any]:
    """Return the query for the number of rows whose reference has no target."""
    other = target.table.alias("referred")
    return (
        sa.select(sa.func.count())
        .select_from(column.table.outerjoin(other, other.c[target.name] == column))
        .where(column.is_not(None), other.c[target.name].is_(None))
    )


def _dangling(
    table: sa.Table, name: str, target: sa.Table, *, level: Level, wrong: str, advice: str = ""
) -> _Rule:
    """Return the rule that each reference of a column has a target."""
    column = table.c[name]
    delete = sa.delete(table).where(column.not_in(sa.select(target.c.id)))
    return _Rule(
        subject=table.name,
        level=level,
        text=wrong,
        remedy=advice or f"{_BACK_UP} Then: {' '.join(str(delete).split())};",
        tables=(table, target),
        count=lambda: _without(column, target.c.id),
    )


def _rootless() -> sa.Select[Any]:
    column = resource_providers.c.root_provider_id
    return sa.select(sa.func.count()).select_from(resource_providers).where(column.is_(None))


def _unrecorded_consumers() -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(
        CONSUMERS_WITHOUT_RECORD.order_by(None).subquery()
    )


_OF_NO_PROVIDER = "of a provider that does not exist"
_BY_HAND = f"{_BACK_UP} Then correct these rows by hand."

_RULES = (
    _Rule(
        "resource_providers",
        Level.ERROR,
        "without a root provider",
        _MIGRATE,
        (resource_providers,),
        _rootless,
    ),
    _Rule(
        "consumers",
        Level.WARNING,
        "that hold allocations but have no record",
        _MIGRATE,
        (allocations, consumers),
        _unrecorded_consumers,
    ),
    *(
        _dangling(
            resource_providers,
            f"{word}_provider_id",
            resource_providers,
            level=Level.ERROR,
            wrong=f"whose {word} does not exist",
            advice=_BY_HAND,
        )
        for word in ("parent", "root")
    ),
    *(
        _dangling(
            table,
            "resource_provider_id",
            resource_providers,
            level=Level.WARNING,
            wrong=_OF_NO_PROVIDER,
        )
        for table in ROWS_OF_PROVIDERS
    ),
    *(
        _dangling(
            table,
            "resource_class_id",
            resource_classes,
            level=Level.ERROR,
            wrong="of a resource class that does not exist",
        )
        for table in (inventories, allocations)
    ),
    _dangling(
        resource_provider_traits,
        "trait_id",
        traits,
        level=Level.ERROR,
        wrong="of a trait that does not exist",
    ),
    _dangling(
        resource_provider_aggregates,
        "aggregate_id",
        placement_aggregates,
        level=Level.WARNING,
        wrong="of an aggregate that does not exist",
    ),
    *(
        _dangling(
            consumers,
            f"{word}_id",
            target,
            level=Level.ERROR,
            wrong=f"of a {word} that does not exist",
            advice=_BY_HAND,
        )
        for word, target in (("project", projects), ("user", users))
    ),
)
