# SPDX-License-Identifier: Apache-2.0
"""Counts the invalid rows of a database to be taken over, each kind with its remedy."""

from collections.abc import Iterator, Sequence
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
from treeclaim.store.takeover.findings import Columns, Finding, Level, passed

_MIGRATE = "Run 'treeclaim db online_data_migrations'."
_BACK_UP = "Make a backup first. Then"

_REFERENCES: Sequence[tuple[sa.Column[Any], sa.Table, Level, str]] = (
    *(
        (
            resource_providers.c[f"{word}_provider_id"],
            resource_providers,
            Level.ERROR,
            f"whose {word} does not exist",
        )
        for word in ("parent", "root")
    ),
    *(
        (
            table.c.resource_provider_id,
            resource_providers,
            Level.WARNING,
            "of a provider that does not exist",
        )
        for table in ROWS_OF_PROVIDERS
    ),
    *(
        (
            table.c.resource_class_id,
            resource_classes,
            Level.ERROR,
            "of a resource class that does not exist",
        )
        for table in (inventories, allocations)
    ),
    (
        resource_provider_traits.c.trait_id,
        traits,
        Level.ERROR,
        "of a trait that does not exist",
    ),
    (
        resource_provider_aggregates.c.aggregate_id,
        placement_aggregates,
        Level.WARNING,
        "of an aggregate that does not exist",
    ),
    (consumers.c.project_id, projects, Level.ERROR, "of a project that does not exist"),
    (consumers.c.user_id, users, Level.ERROR, "of a user that does not exist"),
)
"""Columns that must refer to an existing row of a table: severity and description of rows that do not."""

_MENDED_BY_HAND = (resource_providers, consumers)


def check_rows(connection: Connection, present: Columns) -> Iterator[Finding]:
    """Count the invalid rows of those tables whose columns are complete."""
    for tables, level, text, remedy, count in _rules():
        if any(not present.get(table.name, set()) >= {*table.columns.keys()} for table in tables):
            continue
        subject, number = tables[0].name, connection.execute(count).scalar_one()
        if number:
            yield Finding(level, subject, f"{number} {text}", remedy)
        else:
            yield passed(subject, f"none {text}")


def _rules() -> Iterator[tuple[Sequence[sa.Table], Level, str, str, sa.Select[Any]]]:
    """Yield the needed tables, severity, description, remedy and count of each kind of invalid rows."""
    number = sa.select(sa.func.count())
    rootless = resource_providers.c.root_provider_id.is_(None)
    yield (
        (resource_providers,),
        Level.ERROR,
        "without a root provider",
        _MIGRATE,
        number.select_from(resource_providers).where(rootless),
    )
    yield (
        (consumers, allocations),
        Level.WARNING,
        "that hold allocations but have no record",
        _MIGRATE,
        number.select_from(CONSUMERS_WITHOUT_RECORD.order_by(None).subquery()),
    )
    for column, target, level, text in _REFERENCES:
        table, other = column.table, target.alias("referred")
        delete = sa.delete(table).where(column.not_in(sa.select(target.c.id)))
        remedy = f"{_BACK_UP}: {' '.join(str(delete).split())};"
        if table in _MENDED_BY_HAND:
            remedy = f"{_BACK_UP} correct these rows by hand."
        count = number.select_from(table.outerjoin(other, other.c.id == column)).where(
            column.is_not(None), other.c.id.is_(None)
        )
        yield (table, target), level, text, remedy, count
