# SPDX-License-Identifier: Apache-2.0
"""Consumers with their owners and allocations (contract page 70, section 2; page 99, section 2).

The queries skip consumers without a row, which old databases contain.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import ResourceClassNotFoundError
from treeclaim.model.names import UNKNOWN_TYPE
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database.compiled import CompiledStatement, bind_list
from treeclaim.store.database.transactions import ReadTransaction, seconds
from treeclaim.store.reading.allocations import newest
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    placement_aggregates,
    projects,
    resource_classes,
    resource_provider_aggregates,
    resource_providers,
    users,
)


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

OWNED = (
    sa.select(
        consumers.c.uuid,
        consumers.c.generation,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("type"),
    )
    .select_from(consumers)
    .join(projects, projects.c.id == consumers.c.project_id)
    .join(users, users.c.id == consumers.c.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
)
"""Consumers with a record, and their owners."""

_OWNED_NAMED = CompiledStatement(OWNED.where(consumers.c.uuid.in_(bind_list("uuids"))))
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
    owners, next_after = load_owners(
        transaction, _narrow(consumer_filter), consumer_filter.after, consumer_filter.limit
    )
    # Some collations also match other spellings.
    owners_by_uuid = {row.uuid: row for row in owners if _is_exact(row, consumer_filter)}
    held = load_shares(transaction, list(owners_by_uuid))
    shown = [_shown(row, held[uuid]) for uuid, row in owners_by_uuid.items() if uuid in held]
    return shown, next_after


def load_named_owners(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, Any]:
    """Return the rows of `OWNED` for consumers with a record, by UUID."""
    return {row.uuid: row for row in transaction.rows_in_chunks(_OWNED_NAMED, uuids=uuids)}


def load_shares(
    transaction: ReadTransaction, uuids: Sequence[str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the allocations of consumers as in the response; omit consumers without allocations."""
    return _shares(transaction.rows_in_chunks(HELD, uuids=uuids))


def load_owners(
    transaction: ReadTransaction, statement: sa.Select[Any], after: str, limit: int
) -> tuple[list[Any], str | None]:
    """Return the first rows of a restricted `OWNED` after a uuid, and the last uuid if further rows exist."""
    if after:
        statement = statement.where(consumers.c.uuid > after)
    rows = transaction.rows(statement.order_by(consumers.c.uuid).limit(limit + 1))
    return rows[:limit], rows[limit - 1].uuid if len(rows) > limit else None


def _require_classes(transaction: ReadTransaction, names: Sequence[str]) -> None:
    if not names:
        return
    named = resource_classes.c.name.in_(names)
    existing_names = {
        row.name for row in transaction.rows(sa.select(resource_classes.c.name).where(named))
    }
    for name in names:
        if name not in existing_names:
            raise ResourceClassNotFoundError(name)


def _narrow(consumer_filter: ConsumerFilter) -> sa.Select[Any]:
    statement = OWNED.where(consumers.c.uuid.in_(_records(consumer_filter)))
    if consumer_filter.consumer:
        uuids = [uuid.lower() for uuid in consumer_filter.consumer]
        statement = statement.where(consumers.c.uuid.in_(uuids))
    if consumer_filter.project_id is not None:
        statement = statement.where(projects.c.external_id == consumer_filter.project_id)
    if consumer_filter.user_id is not None:
        statement = statement.where(users.c.external_id == consumer_filter.user_id)
    if consumer_filter.consumer_type == UNKNOWN_TYPE:
        statement = statement.where(consumers.c.consumer_type_id.is_(None))
    elif consumer_filter.consumer_type is not None:
        statement = statement.where(consumer_types.c.name == consumer_filter.consumer_type)
    if consumer_filter.created_since is not None:
        statement = statement.where(consumers.c.created_at >= consumer_filter.created_since)
    return statement


def _records(record_filter: ConsumerFilter) -> sa.Select[Any]:
    """Return the query for the consumers of the allocations that pass, one for each allocation."""
    provider = allocations.c.resource_provider_id
    statement = sa.select(allocations.c.consumer_id)
    statement = statement.where(
        *at_providers(provider, record_filter.provider, record_filter.in_tree)
    )
    for aggregates in record_filter.member_of.member_of:
        statement = statement.where(provider.in_(_members(aggregates)))
    if forbidden := record_filter.member_of.forbidden_aggregates:
        statement = statement.where(provider.not_in(_members(forbidden)))
    if record_filter.resource_class:
        ids = sa.select(resource_classes.c.id).where(
            resource_classes.c.name.in_(record_filter.resource_class)
        )
        statement = statement.where(allocations.c.resource_class_id.in_(ids))
    return statement


def at_providers(
    provider: sa.Column[int], providers: Sequence[str], in_tree: Sequence[str]
) -> list[sa.ColumnElement[bool]]:
    """Return the SQL conditions on the provider of an allocation; see `ConsumerFilter`."""
    conditions: list[sa.ColumnElement[bool]] = []
    if providers:
        named = sa.select(resource_providers.c.id).where(resource_providers.c.uuid.in_(providers))
        conditions.append(provider.in_(named))
    if in_tree:
        root = sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id)
        roots = sa.select(root).where(resource_providers.c.uuid.in_(in_tree))
        members = sa.select(resource_providers.c.id).where(root.in_(roots.scalar_subquery()))
        conditions.append(provider.in_(members))
    return conditions


def _members(aggregates: frozenset[str]) -> sa.Select[Any]:
    return (
        sa.select(resource_provider_aggregates.c.resource_provider_id)
        .join(
            placement_aggregates,
            placement_aggregates.c.id == resource_provider_aggregates.c.aggregate_id,
        )
        .where(placement_aggregates.c.uuid.in_(sorted(aggregates)))
    )


def _is_exact(row: Any, consumer_filter: ConsumerFilter) -> bool:
    return (
        consumer_filter.project_id in {None, row.project}
        and consumer_filter.user_id in {None, row.user}
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
        "user_id": owner.user,
        "consumer_generation": owner.generation,
        "consumer_type": owner.type or UNKNOWN_TYPE,
    }
