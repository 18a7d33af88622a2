# SPDX-License-Identifier: Apache-2.0
"""What a claim needs to know before any provider is locked, by one question.

Each question is a way to the database and back, and nothing here depends on another answer.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim, ConsumerType
from treeclaim.store.database.ready import Ready
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.schema.mixed_collations import PlainText
from treeclaim.store.schema.tables import (
    allocations,
    consumer_types,
    consumers,
    projects,
    resource_classes,
    users,
)

Usage = Counter[tuple[int, int]]
"""Units by (provider id, class id)."""

NAMES = {
    projects: projects.c.external_id,
    users: users.c.external_id,
    consumer_types: consumer_types.c.name,
}
"""Where owners have their names."""

_HELD = 0
_CONSUMER = 1
_OWNER = 2
"""And the next numbers, one for each table of `NAMES`."""

_CLASS = _OWNER + len(NAMES)
_NOTHING: sa.ColumnElement[int] = sa.literal_column("0")


def _part(
    kind: int,
    number: sa.Column[Any],
    name: sa.Column[Any],
    *more: sa.ColumnElement[Any],
) -> sa.Select[Any]:
    class_id, used = more or (_NOTHING, _NOTHING)
    return sa.select(
        sa.literal_column(str(kind)).label("kind"),
        number.label("id"),
        PlainText(name).label("name"),
        class_id.label("class_id"),
        used.label("used"),
    ).where(name.in_(sa.bindparam(f"names_{kind}", expanding=True)))


_HELD_ROWS = _part(
    _HELD,
    allocations.c.resource_provider_id,
    allocations.c.consumer_id,
    allocations.c.resource_class_id,
    allocations.c.used,
)
_HELD_BY = Ready(_HELD_ROWS)
_EVERYTHING = Ready(
    sa.union_all(
        _HELD_ROWS,
        _part(_CONSUMER, consumers.c.id, consumers.c.uuid),
        *(_part(_OWNER + at, table.c.id, name) for at, (table, name) in enumerate(NAMES.items())),
        _part(_CLASS, resource_classes.c.id, resource_classes.c.name),
    )
)


@dataclass(frozen=True, slots=True)
class Held:
    """What the consumers of a write held before it.

    Attributes:
        usage: Sum of their records.
        providers: Ids of the providers by consumer.
        records: Number of their records.
    """

    usage: Usage
    providers: Mapping[str, set[int]]
    records: int


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is there of that which some claims name.

    Attributes:
        held: What their consumers hold.
        consumers: Uuids of those that have a row.
        owners: Ids of projects, users and consumer types.
        class_ids: Ids of resource classes.
    """

    held: Held
    consumers: AbstractSet[str]
    owners: Mapping[tuple[sa.Table, str], int]
    class_ids: Mapping[str, int]


def look_up(transaction: ReadTransaction, claims: Sequence[ConsumerClaim]) -> Lookup:
    """Look up what some claims name; what is not found under its exact name is left out."""
    uuids = [claim.consumer_uuid for claim in claims]
    names = {_HELD: set(uuids), _CONSUMER: set(uuids)} | _names_of_owners(claims)
    names[_CLASS] = {
        name for claim in claims for some in claim.allocations.values() for name in some
    }
    asked = {f"names_{kind}": sorted(some) for kind, some in names.items()}
    found: dict[int, list[Any]] = defaultdict(list)
    for row in transaction.rows(_EVERYTHING, **asked):
        # Some collations find other spellings too.
        if row.name in names[row.kind]:
            found[row.kind].append(row)
    return Lookup(
        held=_held(found[_HELD]),
        consumers={row.name for row in found[_CONSUMER]},
        owners={
            (table, row.name): row.id
            for at, table in enumerate(NAMES)
            for row in found[_OWNER + at]
        },
        class_ids={row.name: row.id for row in found[_CLASS]},
    )


def held_by(transaction: ReadTransaction, uuids: Sequence[str]) -> Held:
    """Look up what some consumers hold."""
    rows = transaction.rows(_HELD_BY, **{f"names_{_HELD}": sorted(uuids)})
    return _held([row for row in rows if row.name in uuids])


def _names_of_owners(claims: Sequence[ConsumerClaim]) -> dict[int, set[str]]:
    """Return the names of owners by kind; a claim that empties a consumer needs none."""
    wanted: dict[sa.Table, set[str]] = {table: set() for table in NAMES}
    for claim in claims:
        if not claim.allocations:
            continue
        wanted[projects].add(claim.project_id)
        wanted[users].add(claim.user_id)
        if not isinstance(claim.consumer_type, ConsumerType):
            wanted[consumer_types].add(claim.consumer_type)
    return {_OWNER + at: wanted[table] for at, table in enumerate(NAMES)}


def _held(rows: Sequence[Any]) -> Held:
    usage: Usage = Counter()
    providers: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        usage[row.id, row.class_id] += row.used
        providers[row.name].add(row.id)
    return Held(usage, dict(providers), len(rows))
