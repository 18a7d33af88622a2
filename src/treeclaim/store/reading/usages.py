# SPDX-License-Identifier: Apache-2.0
"""Usage by project and user (contract page 80, section 2)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from treeclaim.model.claim import UsageGroup
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    users,
)

_CONSUMERS = (
    consumers.join(projects, projects.c.id == consumers.c.project_id)
    .join(users, users.c.id == consumers.c.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
    .join(allocations, allocations.c.consumer_id == consumers.c.uuid)
)


def _of(statement: sa.Select[Any], name: sa.Column[Any], parameter: str) -> sa.Select[Any]:
    """Narrow sums to an owner, and return each owner: some collations match other spellings."""
    narrowed = statement.where(name == sa.bindparam(parameter))
    return narrowed.add_columns(name.label(parameter)).group_by(name)


_SUMS = _of(
    sa.select(
        consumer_types.c.name.label("type"),
        resource_classes.c.name.label("resource_class"),
        sa.func.sum(allocations.c.used).label("used"),
    )
    .select_from(
        _CONSUMERS.join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    )
    .group_by(consumer_types.c.name, resource_classes.c.name),
    projects.c.external_id,
    "project_id",
)
_COUNTS = _of(
    sa.select(
        consumer_types.c.name.label("type"),
        sa.func.count(sa.distinct(consumers.c.id)).label("consumers"),
    )
    .select_from(_CONSUMERS)
    .group_by(consumer_types.c.name),
    projects.c.external_id,
    "project_id",
)
_SUMS_OF_USER = _of(_SUMS, users.c.external_id, "user_id")
_COUNTS_OF_USER = _of(_COUNTS, users.c.external_id, "user_id")


def of_project(
    transaction: ReadTransaction, project_id: str, user_id: str | None
) -> list[UsageGroup]:
    """Return the sums over a project's (and user's) consumers, a group for each consumer type."""
    owners = {"project_id": project_id} | ({} if user_id is None else {"user_id": user_id})
    sums, counts = (_SUMS, _COUNTS) if user_id is None else (_SUMS_OF_USER, _COUNTS_OF_USER)
    resources: dict[str | None, dict[str, int]] = defaultdict(dict)
    for row in _exactly(transaction.rows(sums, **owners), owners):
        resources[row.type][row.resource_class] = int(row.used)
    return [
        UsageGroup(row.type, row.consumers, resources[row.type])
        for row in _exactly(transaction.rows(counts, **owners), owners)
    ]


def _exactly(rows: Iterable[Any], owners: Mapping[str, str]) -> Iterator[Any]:
    """Yield the rows of exactly these owners."""
    for row in rows:
        if all(getattr(row, parameter) == name for parameter, name in owners.items()):
            yield row
