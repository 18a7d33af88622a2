# SPDX-License-Identifier: Apache-2.0
"""Consumers with their owners and allocations (contract page 70, section 2; page 99, section 2).

Queries skip consumers without a row, which old databases contain.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database.transactions import ReadTransaction, to_timestamp
from treeclaim.store.reading.allocations import find_newest_time


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """A filter of consumers, and a page (contract page 99, section 2); None or an empty value means any.

    A single allocation must pass all filters of providers and classes.

    Attributes:
        in_tree: UUIDs of providers; the provider must be in the tree of one of them.
        member_of: Conditions on the aggregates of the provider itself.
        consumer: UUIDs with dashes.
        consumer_type: Name, or `UNKNOWN_TYPE`.
        created_since: Naive UTC.
        after: UUID before the page; empty for the first page.
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
"""Consumers as in the response, in order of UUID, and the `after` of the next page; None for the last page."""

CONSUMER_ROWS = """
SELECT consumers.uuid, consumers.generation, projects.external_id AS project,
    users.external_id AS user_name, consumer_types.name AS type
FROM consumers JOIN projects ON projects.id = consumers.project_id
JOIN users ON users.id = consumers.user_id
LEFT JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
"""
"""Selects consumers with a record, and their owners."""

_NAMED_ROWS = f"{CONSUMER_ROWS} WHERE consumers.uuid IN :uuids"
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


class WhereClause:
    """A conjunction of SQL conditions, with the values of their parameters."""

    def __init__(self) -> None:
        self.sql = "1 = 1"
        self.values: dict[str, Any] = {}

    def add(self, sql: str, **values: Any) -> None:
        """Add a condition; skip it if a value is None or an empty list, which means any."""
        if all(value is not None and value != [] for value in values.values()):
            self.sql = f"{self.sql} AND {sql}"
            self.values |= values

    def add_providers(self, column: str, provider: Sequence[str], in_tree: Sequence[str]) -> None:
        """Add the conditions on the provider of an allocation, as in `ConsumerFilter`."""
        condition = f"{column} IN (SELECT id FROM resource_providers WHERE uuid IN :provider)"
        self.add(condition, provider=list(provider))
        self.add(f"{column} IN ({_IN_TREES})", in_tree=list(in_tree))


_ALLOCATIONS = """
SELECT allocations.consumer_id, resource_providers.uuid, resource_providers.generation,
    resource_classes.name, allocations.used{further}
FROM allocations JOIN resource_providers ON resource_providers.id = resource_provider_id
JOIN resource_classes ON resource_classes.id = resource_class_id
WHERE allocations.consumer_id IN :uuids ORDER BY allocations.id
"""
ALLOCATIONS_OF_CONSUMERS = _ALLOCATIONS.format(further="")
"""Selects the allocations of the consumers `uuids`."""

_ALLOCATIONS_WITH_TIMES = _ALLOCATIONS.format(
    further=", allocations.created_at, allocations.updated_at"
)


def load_consumer(
    transaction: ReadTransaction, uuid: str, *, may_be_empty: bool = False
) -> tuple[dict[str, Any], float] | None:
    """Return a consumer as in the response, and the time of its newest allocation in seconds since the epoch.

    Returns None for a consumer without a record, and for one without allocations unless it `may_be_empty`: a
    hold may have only a record (page 100, section 1).
    """
    consumer = find_consumer_rows(transaction, [uuid]).get(uuid)
    rows = transaction.rows(_ALLOCATIONS_WITH_TIMES, uuids=[uuid])
    if consumer is None or not (rows or may_be_empty):
        return None
    allocations = _group_by_consumer(row[:-2] for row in rows).get(uuid, {})
    modified_at = find_newest_time(rows)
    return _make_document(consumer, allocations), (
        to_timestamp(transaction.now) if modified_at is None else modified_at
    )


def load_consumer_page(transaction: ReadTransaction, consumer_filter: ConsumerFilter) -> Page:
    """Return a page of the consumers that pass the filter.

    Raises:
        ResourceClassNotFoundError: for the first unknown class.
    """
    _require_classes(transaction, consumer_filter.resource_class)
    rows, next_after = load_consumer_rows(
        transaction, _make_clause(consumer_filter), consumer_filter.after, consumer_filter.limit
    )
    # Some collations also match other spellings.
    consumers = {row.uuid: row for row in rows if _is_exact(row, consumer_filter)}
    allocations = load_allocations(transaction, list(consumers))
    documents = [
        _make_document(row, allocations[uuid])
        for uuid, row in consumers.items()
        if uuid in allocations
    ]
    return documents, next_after


def find_consumer_rows(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, Any]:
    """Return the `CONSUMER_ROWS` of consumers with a record, by UUID."""
    return {row.uuid: row for row in transaction.rows_in_chunks(_NAMED_ROWS, uuids=uuids)}


def load_allocations(
    transaction: ReadTransaction, uuids: Sequence[str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the allocations of consumers as in the response; omit consumers without allocations."""
    return _group_by_consumer(transaction.rows_in_chunks(ALLOCATIONS_OF_CONSUMERS, uuids=uuids))


def load_consumer_rows(
    transaction: ReadTransaction, clause: WhereClause, after: str, limit: int
) -> tuple[list[Any], str | None]:
    """Return the first `CONSUMER_ROWS` after a UUID that match, and the last UUID if further rows match."""
    clause.add("consumers.uuid > :after", after=after or None)
    sql = f"{CONSUMER_ROWS} WHERE {clause.sql} ORDER BY consumers.uuid LIMIT :most"
    rows = transaction.rows(sql, most=limit + 1, **clause.values)
    return rows[:limit], rows[limit - 1].uuid if len(rows) > limit else None


def _require_classes(transaction: ReadTransaction, names: Sequence[str]) -> None:
    existing_names = {row.name for row in transaction.rows(_CLASSES, names=list(names))}
    for name in names:
        if name not in existing_names:
            raise ResourceClassNotFoundError(name)


def _make_clause(consumer_filter: ConsumerFilter) -> WhereClause:
    allocation, provider = WhereClause(), "resource_provider_id"
    allocation.add_providers(provider, consumer_filter.provider, consumer_filter.in_tree)
    aggregates = consumer_filter.member_of
    for number, members in enumerate(aggregates.member_of):
        name = f"aggregates_{number}"
        allocation.add(f"{provider} IN ({_MEMBERS.format(name=name)})", **{name: sorted(members)})
    allocation.add(
        f"{provider} NOT IN ({_MEMBERS.format(name='forbidden')})",
        forbidden=sorted(aggregates.forbidden_aggregates),
    )
    allocation.add(
        "resource_class_id IN (SELECT id FROM resource_classes WHERE name IN :classes)",
        classes=list(consumer_filter.resource_class),
    )
    clause = WhereClause()
    clause.add(
        f"consumers.uuid IN (SELECT consumer_id FROM allocations WHERE {allocation.sql})",
        **allocation.values,
    )
    clause.add(
        "consumers.uuid IN :consumers",
        consumers=[uuid.lower() for uuid in consumer_filter.consumer],
    )
    clause.add("projects.external_id = :project", project=consumer_filter.project_id)
    clause.add("users.external_id = :user_name", user_name=consumer_filter.user_id)
    if consumer_filter.consumer_type == UNKNOWN_TYPE:
        clause.add("consumers.consumer_type_id IS NULL")
    else:
        clause.add("consumer_types.name = :type", type=consumer_filter.consumer_type)
    clause.add("consumers.created_at >= :since", since=consumer_filter.created_since)
    return clause


def _is_exact(row: Any, consumer_filter: ConsumerFilter) -> bool:
    return (
        consumer_filter.project_id in {None, row.project}
        and consumer_filter.user_id in {None, row.user_name}
        and consumer_filter.consumer_type in {None, row.type or UNKNOWN_TYPE}
    )


def _group_by_consumer(rows: Iterable[Any]) -> dict[str, dict[str, dict[str, Any]]]:
    by_consumer: dict[str, dict[str, dict[str, Any]]] = {}
    for consumer, provider, generation, name, used in rows:
        empty: dict[str, Any] = {"generation": generation or 0, "resources": {}}
        by_provider = by_consumer.setdefault(consumer, {})
        by_provider.setdefault(provider, empty)["resources"][name] = used
    return by_consumer


def _make_document(consumer: Any, allocations: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "uuid": consumer.uuid,
        "allocations": allocations,
        "project_id": consumer.project,
        "user_id": consumer.user_name,
        "consumer_generation": consumer.generation,
        "consumer_type": consumer.type or UNKNOWN_TYPE,
    }
