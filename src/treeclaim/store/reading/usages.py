# SPDX-License-Identifier: Apache-2.0
"""Usage by project and user (contract page 80, section 2)."""

from collections import defaultdict

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
_MINE = projects.c.external_id == sa.bindparam("project_id")
_OF_USER = users.c.external_id == sa.bindparam("user_id")

_SUMS = (
    sa.select(
        consumer_types.c.name.label("type"),
        resource_classes.c.name.label("resource_class"),
        sa.func.sum(allocations.c.used).label("used"),
    )
    .select_from(
        _CONSUMERS.join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
    )
    .where(_MINE)
    .group_by(consumer_types.c.name, resource_classes.c.name)
)
_COUNTS = (
    sa.select(
        consumer_types.c.name.label("type"),
        sa.func.count(sa.distinct(consumers.c.id)).label("consumers"),
    )
    .select_from(_CONSUMERS)
    .where(_MINE)
    .group_by(consumer_types.c.name)
)
_SUMS_OF_USER = _SUMS.where(_OF_USER)
_COUNTS_OF_USER = _COUNTS.where(_OF_USER)


def of_project(
    transaction: ReadTransaction, project_id: str, user_id: str | None
) -> list[UsageGroup]:
    """Return the sums over a project's (and user's) consumers, a group for each consumer type."""
    if user_id is None:
        sums = transaction.rows(_SUMS, project_id=project_id)
        counts = transaction.rows(_COUNTS, project_id=project_id)
    else:
        sums = transaction.rows(_SUMS_OF_USER, project_id=project_id, user_id=user_id)
        counts = transaction.rows(_COUNTS_OF_USER, project_id=project_id, user_id=user_id)
    resources: dict[str | None, dict[str, int]] = defaultdict(dict)
    for row in sums:
        resources[row.type][row.resource_class] = int(row.used)
    return [UsageGroup(row.type, row.consumers, resources[row.type]) for row in counts]
