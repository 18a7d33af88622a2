# SPDX-License-Identifier: Apache-2.0
"""Holds: their terms, amounts, draws and pages (contract page 100).

A hold is a consumer with terms and the type of holds. Another service on the database may delete the
consumer, change its type, or reduce the allocations of a consumer that draws. Terms without such a consumer
are therefore ignored, and so are draws beyond the allocations of their consumer. If its draws of a class at a
provider exceed its allocation, those from the holds with the least UUIDs count.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from treeclaim.model.claim import HOLD_TYPE, Amounts, HoldTerms, StoredHold
from treeclaim.store.database.transactions import ReadTransaction, as_datetime
from treeclaim.store.reading.consumers import (
    ALLOCATIONS_OF_CONSUMERS,
    Page,
    WhereClause,
    load_allocations,
    load_consumer_rows,
)

_EXISTING = f"""
treeclaim_holds JOIN consumers ON consumers.uuid = treeclaim_holds.uuid
JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
    AND consumer_types.name = '{HOLD_TYPE}'
JOIN projects ON projects.id = consumers.project_id
"""
"""Joins the terms of existing holds to their consumers and projects."""

_TERMS = f"""
SELECT treeclaim_holds.uuid, ends_at, returns, note, projects.external_id AS project
FROM {_EXISTING} WHERE treeclaim_holds.uuid IN :uuids
"""
_PROJECTS = """
SELECT hold_uuid, project FROM treeclaim_hold_projects WHERE hold_uuid IN :uuids
ORDER BY hold_uuid, number
"""
EXISTING_HOLDS = f"SELECT treeclaim_holds.uuid FROM {_EXISTING}"

_DRAWS = f"""
SELECT hold_uuid, consumer_uuid, resource_providers.uuid, resource_classes.name, amount, used
FROM treeclaim_draws
JOIN consumers ON consumers.uuid = hold_uuid
JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
JOIN allocations ON consumer_id = consumer_uuid AND resource_provider_id = provider_id
    AND resource_class_id = class_id
JOIN resource_providers ON resource_providers.id = provider_id
JOIN resource_classes ON resource_classes.id = class_id
WHERE consumer_types.name = '{HOLD_TYPE}' AND hold_uuid IN (SELECT uuid FROM treeclaim_holds)
"""
_DRAWN_BY_ALL = f"{_DRAWS} ORDER BY hold_uuid"
_DRAWN_BY = f"{_DRAWS} AND consumer_uuid IN :uuids ORDER BY hold_uuid"
# All draws of consumers that draw from these holds: draws from other holds may count first.
_DRAWN_FROM = f"""
{_DRAWS} AND consumer_uuid IN (
    SELECT consumer_uuid FROM treeclaim_draws drawn_from WHERE hold_uuid IN :uuids
) ORDER BY hold_uuid
"""

_Draw = tuple[str, str, str, str, int]
"""Hold, consumer, provider, class and amount."""


def load_held_amounts(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, Amounts]:
    """Return the amounts of existing, unexpired holds, by UUID."""
    amounts_by_hold: dict[str, dict[str, dict[str, int]]] = {
        uuid: {} for uuid in find_drawable_holds(transaction, uuids)
    }
    allocation_rows = transaction.rows_in_chunks(
        ALLOCATIONS_OF_CONSUMERS, uuids=list(amounts_by_hold)
    )
    for hold, provider, _, name, used in allocation_rows:
        amounts_by_hold[hold].setdefault(provider, {})[name] = int(used)
    return dict(amounts_by_hold)


def find_drawable_holds(
    transaction: ReadTransaction, uuids: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Return the projects that may draw from each existing, unexpired hold."""
    return {
        uuid: frozenset({project, *terms.projects})
        for uuid, (project, terms) in load_hold_terms(transaction, uuids).items()
        if terms.until is None or terms.until > transaction.now
    }


def load_hold_terms(
    transaction: ReadTransaction, uuids: Sequence[str]
) -> dict[str, tuple[str, HoldTerms]]:
    """Return project and terms of the consumers that are holds, by UUID."""
    rows = list(transaction.rows_in_chunks(_TERMS, uuids=uuids))
    hold_uuids = [row.uuid for row in rows]
    projects: dict[str, list[str]] = defaultdict(list)
    for hold, project in transaction.rows_in_chunks(_PROJECTS, uuids=hold_uuids):
        projects[hold].append(project)
    return {
        row.uuid: (
            row.project,
            HoldTerms(
                until=as_datetime(row.ends_at),
                returns=bool(row.returns),
                projects=tuple(projects[row.uuid]),
                note=None if row.note is None else orjson.loads(row.note),
            ),
        )
        for row in rows
    }


def load_holds(transaction: ReadTransaction, uuids: Sequence[str]) -> dict[str, StoredHold]:
    """Return the consumers that are holds, by UUID, with the amounts drawn from them."""
    terms_by_uuid = load_hold_terms(transaction, uuids)
    drawn_by_hold: dict[str, dict[str, dict[str, int]]] = {uuid: {} for uuid in terms_by_uuid}
    draws_from = transaction.rows_in_chunks(_DRAWN_FROM, uuids=list(terms_by_uuid))
    for hold, _, provider, name, amount in _select_valid_draws(draws_from):
        if hold in drawn_by_hold:
            provider_amounts = drawn_by_hold[hold].setdefault(provider, {})
            provider_amounts[name] = provider_amounts.get(name, 0) + amount
    return {
        uuid: StoredHold(project, terms, drawn_by_hold[uuid])
        for uuid, (project, terms) in terms_by_uuid.items()
    }


def load_draws(
    transaction: ReadTransaction, consumer_uuids: Sequence[str] | None
) -> Mapping[str, Mapping[str, Amounts]]:
    """Return the draws of consumers (None for all), by consumer and hold."""
    rows: Iterable[Any]
    if consumer_uuids is None:
        rows = transaction.rows(_DRAWN_BY_ALL)
    else:
        rows = transaction.rows_in_chunks(_DRAWN_BY, uuids=consumer_uuids)
    draws_by_consumer: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for hold, consumer, provider, name, amount in _select_valid_draws(rows):
        hold_draws = draws_by_consumer.setdefault(consumer, {}).setdefault(hold, {})
        hold_draws.setdefault(provider, {})[name] = amount
    return draws_by_consumer


def _select_valid_draws(rows: Iterable[Any]) -> Iterator[_Draw]:
    """Yield the draws that count, given all draws of each consumer in the order of holds."""
    remaining_units: dict[tuple[str, str, str], int] = {}
    seen_draws = set()
    for hold, consumer, provider, name, amount, used in rows:
        key = (consumer, provider, name)
        # Several chunks of holds may return the same consumer.
        if (hold, key) in seen_draws:
            continue
        seen_draws.add((hold, key))
        units = remaining_units.setdefault(key, int(used))
        if valid_units := min(int(amount), units):
            remaining_units[key] = units - valid_units
            yield hold, consumer, provider, name, valid_units


HELD_EVERYWHERE = f"""
SELECT resource_provider_id + 0 AS provider_id, resource_class_id + 0 AS class_id, SUM(used)
FROM treeclaim_holds JOIN consumers ON consumers.uuid = treeclaim_holds.uuid
JOIN allocations ON consumer_id = treeclaim_holds.uuid
WHERE consumer_type_id IN (SELECT id FROM consumer_types WHERE name = '{HOLD_TYPE}')
GROUP BY resource_provider_id + 0, resource_class_id + 0
"""
"""Sums the held amounts of each inventory. The terms of holds come first, so the query is cheap without holds.

It groups by expressions, which have no index: by the columns, SQLite would read all allocations in index
order instead of sorting those of holds."""


def load_held_sums(transaction: ReadTransaction) -> dict[tuple[int, int], int]:
    """Return the amounts of all holds together, expired ones included, by ids of provider and class."""
    rows = transaction.rows(HELD_EVERYWHERE)
    return {(provider_id, class_id): int(used) for provider_id, class_id, used in rows}


@dataclass(frozen=True, slots=True)
class HoldFilter:
    """A filter of holds, and a page; None or an empty value means any.

    Attributes:
        drawable_by: A project that may draw.
        provider: UUIDs of providers; the hold has amounts or draws at one of them.
        in_tree: UUIDs of providers; the hold has amounts or draws in the tree of one of them.
        until_before: Upper bound of the end of the hold, naive UTC.
        after: UUID before the page; empty for the first page.
    """

    project_id: str | None
    drawable_by: str | None
    provider: Sequence[str]
    in_tree: Sequence[str]
    until_before: datetime | None
    after: str
    limit: int


def load_hold_page(transaction: ReadTransaction, hold_filter: HoldFilter) -> Page:
    """Return a page of the holds that pass all filters and have allocations or draws."""
    rows, next_after = load_consumer_rows(
        transaction, _make_clause(hold_filter), hold_filter.after, hold_filter.limit
    )
    uuids = [row.uuid for row in rows]
    holds = load_holds(transaction, uuids)
    allocations = load_allocations(transaction, uuids)
    documents = []
    for row in rows:
        # Consumers with terms and another type are no holds.
        hold = holds.get(row.uuid)
        if hold is None or not (allocations.get(row.uuid) or hold.drawn):
            continue
        # Some collations also match other spellings.
        drawing_projects = {None, hold.project_id, *hold.terms.projects}
        if hold_filter.project_id not in {None, hold.project_id}:
            continue
        if hold_filter.drawable_by not in drawing_projects:
            continue
        documents.append(
            {
                "uuid": row.uuid,
                "project_id": row.project,
                "user_id": row.user_name,
                "consumer_generation": row.generation,
                "allocations": allocations.get(row.uuid, {}),
                "hold": hold.to_document(),
            }
        )
    return documents, next_after


def _make_clause(hold_filter: HoldFilter) -> WhereClause:
    terms, location, clause = WhereClause(), WhereClause(), WhereClause()
    terms.add("ends_at < :until_before", until_before=hold_filter.until_before)
    location.add_providers("{provider_id}", hold_filter.provider, hold_filter.in_tree)
    location_conditions = [
        f"consumers.uuid IN (SELECT {uuid} FROM {table} WHERE {location.sql.format(provider_id=column)})"
        for uuid, table, column in (
            ("consumer_id", "allocations", "resource_provider_id"),
            ("hold_uuid", "treeclaim_draws", "provider_id"),
        )
    ]
    clause.add(
        f"consumers.uuid IN (SELECT uuid FROM treeclaim_holds WHERE {terms.sql})", **terms.values
    )
    clause.add(f"({' OR '.join(location_conditions)})", **location.values)
    clause.add("projects.external_id = :project", project=hold_filter.project_id)
    clause.add(
        "(projects.external_id = :drawable_by OR consumers.uuid IN "
        "(SELECT hold_uuid FROM treeclaim_hold_projects WHERE project = :drawable_by))",
        drawable_by=hold_filter.drawable_by,
    )
    return clause
