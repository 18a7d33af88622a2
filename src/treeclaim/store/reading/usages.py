# SPDX-License-Identifier: Apache-2.0
"""Usage by project and user (contract page 80, section 2)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from treeclaim.store.database.transactions import ReadTransaction

_OWNERS = {"project_id": "projects", "user_id": "users"}
_SUMS = """
SUM(used) AS amount, resource_class_id, {keys} FROM consumers
JOIN allocations ON consumer_id = consumers.uuid {owned} GROUP BY resource_class_id, {keys}
"""
_COUNTS = """
COUNT(*) AS amount, {keys} FROM consumers {owned}
AND EXISTS (SELECT 1 FROM allocations WHERE consumer_id = consumers.uuid) GROUP BY {keys}
"""


@cache
def _make_query(source: str, names: tuple[str, ...]) -> str:
    """Return a query that groups `source` by the ids of types and owners, and `_SUMS` also by class.

    It selects the names of owners too: some collations also match other spellings.
    """
    join = "JOIN {1} ON {1}.id = {0}"
    owned = " ".join(join.format(name, table) for name, table in _OWNERS.items())
    conditions = " AND ".join(f"{_OWNERS[name]}.external_id = :{name}" for name in names)
    keys = ", ".join(("consumer_type_id", *names))
    groups = source.format(keys=keys, owned=f"{owned} WHERE {conditions}")
    columns = ["consumer_types.name AS type", "amount"]
    columns += [f"{_OWNERS[name]}.external_id AS {name}" for name in names]
    joins = [join.format(f"owned.{name}", _OWNERS[name]) for name in names]
    if source is _SUMS:
        columns.append("resource_classes.name AS resource_class")
        joins.append(join.format("resource_class_id", "resource_classes"))
    return (
        f"SELECT {', '.join(columns)} FROM (SELECT {groups}) owned "
        f"LEFT JOIN consumer_types ON consumer_types.id = consumer_type_id {' '.join(joins)}"
    )


def load_usages(
    transaction: ReadTransaction, project_id: str, user_id: str | None
) -> dict[str | None, dict[str, int]]:
    """Return the amount of each class, and `consumer_count`, by consumer type, for a project and perhaps a user.

    Consumers without a type have the key None.
    """
    owners = {"project_id": project_id} | ({} if user_id is None else {"user_id": user_id})
    resources: dict[str | None, dict[str, int]] = defaultdict(dict)
    sums = transaction.rows(_make_query(_SUMS, tuple(owners)), **owners)
    for row in _select_exact(sums, owners):
        resources[row.type][row.resource_class] = int(row.amount)
    counts = transaction.rows(_make_query(_COUNTS, tuple(owners)), **owners)
    return {
        row.type: {"consumer_count": row.amount, **resources[row.type]}
        for row in _select_exact(counts, owners)
    }


def _select_exact(rows: Iterable[Any], owners: Mapping[str, str]) -> Iterator[Any]:
    for row in rows:
        if all(getattr(row, parameter) == name for parameter, name in owners.items()):
            yield row
