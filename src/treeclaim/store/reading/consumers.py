# SPDX-License-Identifier: Apache-2.0
"""Consumers with their owners and allocations (contract page 70, section 2; page 99, section 2).

The queries skip consumers without a row, which old databases contain.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database.transactions import ReadTransaction, seconds
from treeclaim.store.reading.allocations import newest


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """A filter of consumers (contract page 99, section 2); None or an empty value means any.

    A single allocation of the consumer must pass all filters of providers and classes.

    Attributes:
        provider: UUIDs of providers.
        in_tree: UUIDs of providers, in whose trees the provider must be.
        member_of: Conditions on the aggregates of the provider itself.
        resource_class: Names of resource classes.
        consumer: UUIDs with dashes.
        project_id, user_id: Owners.
        consumer_type: Name, or `UNKNOWN_TYPE`.
        created_since: The earliest creation of the record, naive UTC.
        after: UUID after which the page begins; empty for the first page.
        limit: Most consumers.
    """

    provider: Sequence[str]
    in_tree: Sequence[str]
    member_of: ProviderConditions
    resource_class: Sequence[str]
    consumer: Sequence[str]
    project_id: str | None
    user_id: str | None
    consumer_type: str | None
    created_since: datetime | None
    after: str
    limit: int


Page = tuple[list[dict[str, Any]], str | None]
"""Consumers as in the response, in order of uuid, and the uuid after which the next page begins; None for the
last page."""

OWNED = """
SELECT consumers.uuid, consumers.generation, projects.external_id AS project,
    users.external_id AS user_name, consumer_types.name AS type
FROM consumers JOIN projects ON projects.id = consumers.project_id
JOIN users ON users.id = consumers.user_id
LEFT JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
"""
"""Consumers with a record, and their owners."""

_OWNED_NAMED = f"{OWNED} WHERE consumers.uuid IN :uuids"
_CLASSES = "SELECT name FROM resource_classes WHERE name IN :names"
_ROOT = "COALESCE(root_provider_id, id)"
_IN_TREES = f"""
SELECT id FROM resource_providers
WHERE {_ROOT} IN (SELECT {_ROOT} FROM resource_providers WHERE uuid IN :in_tree)
"""
_MEMBERS = """
SELECT resource_provider_id FROM resource_provider_aggregates
JOIN placement_aggregates ON placement_aggregates.id = aggregate_id WHERE uuid IN :{name}
"""


class Conditions:
    """SQL conditions that rows must fulfil together, and the values of their parameters."""

    def __init__(self) -> None:
        self.sql = "1 = 1"
        self.values: dict[str, Any] = {}

    def add(self, sql: str, **values: Any) -> None:
        """Add a condition, unless one of its values is None or an empty list, which means any."""
        if all(value is not None and value != [] for value in values.values()):
            self.sql = f"{self.sql} AND {sql}"
            self.values |= values

    def add_providers(self, column: str, provider: Sequence[str], in_tree: Sequence[str]) -> None:
        """Add the conditions on the provider of an allocation; see `ConsumerFilter`."""
        named = f"{column} IN (SELECT id FROM resource_providers WHERE uuid IN :provider)"
        self.add(named, provider=list(provider))
        self.add(f"{column} IN ({_IN_TREES})", in_tree=list(in_tree))


_HELD = """
SELECT allocations.consumer_id, resource_providers.uuid, resource_providers.generation,
    resource_classes.name, allocations.used{further}
FROM allocations JOIN resource_providers ON resource_providers.id = resource_provider_id
JOIN resource_classes ON resource_classes.id = resource_class_id
WHERE allocations.consumer_id IN :uuids ORDER BY allocations.id
"""
HELD = _HELD.format(further="")
"""The allocations of the consumers in the list `uuids`."""

_HELD_WITH_TIMES = _HELD.format(further=", allocations.created_at, allocations.updated_at")


def load_consumer(
    transaction: ReadTransaction, uuid: str, *, may_be_empty: bool = False
) -> tuple[dict[str, Any], float] | None:
    """Return a consumer as in the response, and the time of its newest allocation in seconds since the epoch.

    Returns None if the consumer does not exist or has no allocations. With `may_be_empty`, it also returns a
    consumer without allocations: a hold may have only a record (page 100, section 1).
    """
    owners = transaction.rows(_OWNED_NAMED, uuids=[uuid])
    rows = transaction.rows(_HELD_WITH_TIMES, uuids=[uuid])
    if not owners or owners[0].uuid != uuid or not (rows or may_be_empty):
        return None
    shares = _shares(row[:-2] for row in rows).get(uuid, {})
    modified_at = newest(rows)
    return _shown(owners[0], shares), (
        seconds(transaction.now) if modified_at is None else modified_at
    )


def load_consumer_page(transaction: ReadTransaction, consumer_filter: ConsumerFilter) -> Page:
    """Return a page of the consumers that pass all filters, each with its allocations.

    Raises:
        ResourceClassNotFoundError: for the first unknown class.
    """
    _require_classes(transaction, consumer_filter.resource_class)
    owners, next_after = load_consumer_rows(
        transaction, _narrow(consumer_filter), consumer_filter.after, consumer_filter.limit
    )
    # Some collations also match other spellings.
    owners_by_uuid = {row.uuid: row for row in owners if _is_exact(row, consumer_filter)}
    held = load_allocations(transaction, list(owners_by_uuid))
    shown = [_shown(row, held[uuid]) for uuid, row in owners_by_uuid.items() if uuid in held]
    return shown, next_after


def find_consumer_rows(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, Any]:
    """Return the rows of `OWNED` for consumers with a record, by UUID."""
    return {row.uuid: row for row in transaction.rows_in_chunks(_OWNED_NAMED, uuids=uuids)}


def load_allocations(
    transaction: ReadTransaction, uuids: Sequence[str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the allocations of consumers as in the response; omit consumers without allocations."""
    return _shares(transaction.rows_in_chunks(HELD, uuids=uuids))


def load_consumer_rows(
    transaction: ReadTransaction, conditions: Conditions, after: str, limit: int
) -> tuple[list[Any], str | None]:
    """Return the first rows of `OWNED` that pass, after a uuid, and the last uuid if further rows exist."""
    conditions.add("consumers.uuid > :after", after=after or None)
    sql = f"{OWNED} WHERE {conditions.sql} ORDER BY consumers.uuid LIMIT :most"
    rows = transaction.rows(sql, most=limit + 1, **conditions.values)
    return rows[:limit], rows[limit - 1].uuid if len(rows) > limit else None


def _require_classes(transaction: ReadTransaction, names: Sequence[str]) -> None:
    existing_names = {row.name for row in transaction.rows(_CLASSES, names=list(names))}
    for name in names:
        if name not in existing_names:
            raise ResourceClassNotFoundError(name)


def _narrow(consumer_filter: ConsumerFilter) -> Conditions:
    at, provider = Conditions(), "resource_provider_id"
    at.add_providers(provider, consumer_filter.provider, consumer_filter.in_tree)
    aggregates = consumer_filter.member_of
    for number, members in enumerate(aggregates.member_of):
        name = f"aggregates_{number}"
        at.add(f"{provider} IN ({_MEMBERS.format(name=name)})", **{name: sorted(members)})
    at.add(
        f"{provider} NOT IN ({_MEMBERS.format(name='forbidden')})",
        forbidden=sorted(aggregates.forbidden_aggregates),
    )
    at.add(
        "resource_class_id IN (SELECT id FROM resource_classes WHERE name IN :classes)",
        classes=list(consumer_filter.resource_class),
    )
    conditions = Conditions()
    conditions.add(
        f"consumers.uuid IN (SELECT consumer_id FROM allocations WHERE {at.sql})", **at.values
    )
    conditions.add(
        "consumers.uuid IN :consumers",
        consumers=[uuid.lower() for uuid in consumer_filter.consumer],
    )
    conditions.add("projects.external_id = :project", project=consumer_filter.project_id)
    conditions.add("users.external_id = :user_name", user_name=consumer_filter.user_id)
    if consumer_filter.consumer_type == UNKNOWN_TYPE:
        conditions.add("consumers.consumer_type_id IS NULL")
    else:
        conditions.add("consumer_types.name = :type", type=consumer_filter.consumer_type)
    conditions.add("consumers.created_at >= :since", since=consumer_filter.created_since)
    return conditions


def _is_exact(row: Any, consumer_filter: ConsumerFilter) -> bool:
    return (
        consumer_filter.project_id in {None, row.project}
        and consumer_filter.user_id in {None, row.user_name}
        and consumer_filter.consumer_type in {None, row.type or UNKNOWN_TYPE}
    )


def _shares(rows: Iterable[Any]) -> dict[str, dict[str, dict[str, Any]]]:
    shares_by_consumer: dict[str, dict[str, dict[str, Any]]] = {}
    for consumer, provider, generation, name, used in rows:
        new_share: dict[str, Any] = {"generation": generation or 0, "resources": {}}
        shares = shares_by_consumer.setdefault(consumer, {})
        shares.setdefault(provider, new_share)["resources"][name] = used
    return shares_by_consumer


def _shown(owner: Any, shares: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uuid": owner.uuid,
        "allocations": shares,
        "project_id": owner.project,
        "user_id": owner.user_name,
        "consumer_generation": owner.generation,
        "consumer_type": owner.type or UNKNOWN_TYPE,
    }
