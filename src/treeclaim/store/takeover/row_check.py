# SPDX-License-Identifier: Apache-2.0
"""Counts the invalid rows of a database to be taken over, each kind with its remedy."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from treeclaim.store.reading.holders import CONSUMERS_WITHOUT_RECORD
from treeclaim.store.schema.revisions import Columns
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

_MIGRATE = "Run 'treeclaim db online_data_migrations'."
_BACK_UP = "Make a backup first. Then"
_BY_HAND = f"{_BACK_UP} correct these rows by hand."

_REFERENCES: Mapping[tuple[sa.Table, Level, str], Sequence[sa.Column[Any]]] = {
    (resource_providers, Level.WARNING, "a provider"): [
        table.c.resource_provider_id for table in ROWS_OF_PROVIDERS
    ],
    (resource_classes, Level.ERROR, "a resource class"): [
        inventories.c.resource_class_id,
        allocations.c.resource_class_id,
    ],
    (traits, Level.ERROR, "a trait"): [resource_provider_traits.c.trait_id],
    (placement_aggregates, Level.WARNING, "an aggregate"): [
        resource_provider_aggregates.c.aggregate_id
    ],
    (projects, Level.ERROR, "a project"): [consumers.c.project_id],
    (users, Level.ERROR, "a user"): [consumers.c.user_id],
}
"""The columns that must refer to a row of a table; the level of a finding, and the word for such a row."""

_Rule = tuple[sa.Select[Any], Sequence[sa.Table], Level, str, str]
"""Count of invalid rows of the first of some needed tables; severity, description and remedy."""


def check_rows(connection: Connection, present: Columns) -> Iterator[Finding]:
    """Count the invalid rows of those tables whose columns are complete."""
    for count, tables, level, text, remedy in _rules():
        if any(not present.get(table.name, set()) >= {*table.columns.keys()} for table in tables):
            continue
        subject, number = tables[0].name, connection.execute(count).scalar_one()
        if number:
            yield Finding(level, subject, f"{number} {text}", remedy)
        else:
            yield passed(subject, f"none {text}")


def _rules() -> Iterator[_Rule]:
    rootless = sa.select(resource_providers.c.id).where(
        resource_providers.c.root_provider_id.is_(None)
    )
    yield _count(rootless), [resource_providers], Level.ERROR, "without a root provider", _MIGRATE
    unrecorded = CONSUMERS_WITHOUT_RECORD.order_by(None)
    text = "that hold allocations but have no record"
    yield _count(unrecorded), [consumers, allocations], Level.WARNING, text, _MIGRATE
    for word in ("parent", "root"):
        dangling = _dangling(resource_providers.c[f"{word}_provider_id"], resource_providers)
        text = f"whose {word} does not exist"
        yield _count(dangling), [resource_providers], Level.ERROR, text, _BY_HAND
    for (target, level, noun), columns in _REFERENCES.items():
        for column in columns:
            table = column.table
            delete = sa.delete(table).where(column.not_in(sa.select(target.c.id)))
            remedy = f"{_BACK_UP}: {' '.join(str(delete).split())};"
            text = f"of {noun} that does not exist"
            yield (
                _count(_dangling(column, target)),
                [table, target],
                level,
                text,
                _BY_HAND if table is consumers else remedy,
            )


def _dangling(column: sa.Column[Any], target: sa.Table) -> sa.Select[Any]:
    """Return the rows whose reference has no row in the table that it refers to."""
    other = target.alias("referred")
    joined = column.table.outerjoin(other, other.c.id == column)
    return sa.select(column).select_from(joined).where(column.is_not(None), other.c.id.is_(None))


def _count(rows: sa.Select[Any]) -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(rows.subquery())
