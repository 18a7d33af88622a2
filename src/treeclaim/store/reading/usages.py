# SPDX-License-Identifier: Apache-2.0
"""Usage by project and user (contract page 80, section 2)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa

from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    users,
)

_CONSUMERS = consumers.join(projects, projects.c.id == consumers.c.project_id).join(
    users, users.c.id == consumers.c.user_id
)
_OWNERS = {
    "project_id": (projects, consumers.c.project_id),
    "user_id": (users, consumers.c.user_id),
}
_AMOUNTS = sa.select(sa.func.sum(allocations.c.used).label("amount")).select_from(
    _CONSUMERS.join(allocations, allocations.c.consumer_id == consumers.c.uuid)
)
_COUNT = (
    sa.select(sa.func.count().label("amount"))
    .select_from(_CONSUMERS)
    .where(sa.exists().where(allocations.c.consumer_id == consumers.c.uuid))
)


@cache
def _group(source: sa.Select[Any], names: tuple[str, ...], *, by_class: bool) -> sa.Select[Any]:
    """Return a query that groups rows of consumers by the ids of types, owners, and maybe classes.

    It adds the names of the groups, owners included: some collations also match other spellings.
    """
    keys = [consumers.c.consumer_type_id, *(_OWNERS[name][1] for name in names)]
    keys += [allocations.c.resource_class_id] if by_class else []
    for name in names:
        source = source.where(_OWNERS[name][0].c.external_id == sa.bindparam(name))
    groups = source.add_columns(*keys).group_by(*keys).subquery()
    joined: sa.FromClause = groups.outerjoin(
        consumer_types, consumer_types.c.id == groups.c.consumer_type_id
    )
    columns = [consumer_types.c.name.label("type"), groups.c.amount]
    for name in names:
        table, key = _OWNERS[name]
        joined = joined.join(table, table.c.id == groups.c[key.name])
        columns.append(table.c.external_id.label(name))
    if by_class:
        joined = joined.join(resource_classes, resource_classes.c.id == groups.c.resource_class_id)
        columns.append(resource_classes.c.name.label("resource_class"))
    return sa.select(*columns).select_from(joined)


def load_usages(
    transaction: ReadTransaction, project_id: str, user_id: str | None
) -> dict[str | None, dict[str, int]]:
    """Return sums over the consumers of a project (and user), by consumer type; None for consumers without one.

    Each has the number of consumers as `consumer_count`, and the amount of each class.
    """
    owners = {"project_id": project_id} | ({} if user_id is None else {"user_id": user_id})
    resources: dict[str | None, dict[str, int]] = defaultdict(dict)
    sums = transaction.rows(_group(_AMOUNTS, tuple(owners), by_class=True), **owners)
    for row in _select_exact(sums, owners):
        resources[row.type][row.resource_class] = int(row.amount)
    counts = transaction.rows(_group(_COUNT, tuple(owners), by_class=False), **owners)
    return {
        row.type: {"consumer_count": row.amount, **resources[row.type]}
        for row in _select_exact(counts, owners)
    }


def _select_exact(rows: Iterable[Any], owners: Mapping[str, str]) -> Iterator[Any]:
    """Yield the rows with exactly these owners."""
    for row in rows:
        if all(getattr(row, parameter) == name for parameter, name in owners.items()):
            yield row
