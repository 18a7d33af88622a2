# SPDX-License-Identifier: Apache-2.0
"""The contents of the database after a schedule, by names instead of ids, and their invariants."""

from collections import Counter
from dataclasses import dataclass, replace

import sqlalchemy as sa

from treeclaim.forest.table.forest import Forest
from treeclaim.store.schema.tables import (
    aggregate_names,
    allocations,
    conditions,
    consumer_types,
    consumers,
    draws,
    hold_projects,
    holds,
    inventories,
    mixes,
    projects,
    requests,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    users,
)

_STALE = "a reader of the feed does not know what is there"

_ALLOCATIONS = (
    sa.select(
        allocations.c.consumer_id,
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        allocations.c.used,
        inventories.c.id.label("inventory"),
        consumers.c.id.label("consumer"),
    )
    .outerjoin(consumers, consumers.c.uuid == allocations.c.consumer_id)
    .outerjoin(
        inventories,
        sa.and_(
            inventories.c.resource_provider_id == allocations.c.resource_provider_id,
            inventories.c.resource_class_id == allocations.c.resource_class_id,
        ),
    )
)
_CONSUMERS = (
    sa.select(
        consumers.c.uuid,
        consumers.c.generation,
        projects.c.external_id.label("project"),
        users.c.external_id.label("user"),
        consumer_types.c.name.label("type"),
    )
    .outerjoin(projects, projects.c.id == consumers.c.project_id)
    .outerjoin(users, users.c.id == consumers.c.user_id)
    .outerjoin(consumer_types, consumer_types.c.id == consumers.c.consumer_type_id)
)
_KEPT = (
    sa.select(sa.literal("draw"), draws.c.hold_uuid, draws.c.consumer_uuid, draws.c.amount),
    sa.select(sa.literal("terms"), holds.c.uuid, holds.c.returns, holds.c.note),
    sa.select(sa.literal("project"), hold_projects.c.hold_uuid, hold_projects.c.project),
    sa.select(
        sa.literal("request"),
        requests.c.consumer_uuid,
        requests.c.request,
        sa.case((requests.c.gone_at.is_(None), 0), else_=1),
    ),
    sa.select(sa.literal("mix"), mixes.c.name, mixes.c.body),
    sa.select(sa.literal("name"), aggregate_names.c.uuid, aggregate_names.c.name),
    sa.select(
        sa.literal("condition"),
        resource_providers.c.uuid,
        conditions.c.name,
        conditions.c.on_use,
        conditions.c.began,
        conditions.c.reason,
    ).outerjoin(resource_providers, resource_providers.c.id == conditions.c.resource_provider_id),
)


def _without(table, column, other):
    return (
        sa.select(sa.literal(table.name).label("place"), column.label("lost"))
        .select_from(table.outerjoin(other, other.c.id == column))
        .where(other.c.id.is_(None), column.is_not(None))
    )


_ORPHANS = sa.union_all(
    _without(inventories, inventories.c.resource_class_id, resource_classes),
    _without(inventories, inventories.c.resource_provider_id, resource_providers),
    _without(
        resource_provider_aggregates,
        resource_provider_aggregates.c.resource_provider_id,
        resource_providers,
    ),
    _without(
        resource_provider_traits,
        resource_provider_traits.c.resource_provider_id,
        resource_providers,
    ),
)


@dataclass(frozen=True)
class Picture:
    """All that clients can see, by names.

    Attributes:
        providers: Of each provider its name, generation, parent, root, inventories with usage,
            traits and aggregates.
        names: Names of traits and classes.
        claims: (consumer, provider, class, amount).
        consumers: (consumer, generation, project, user, type).
        kept: Terms of holds, their projects, what is drawn, kept requests, mixes, names of aggregates,
            conditions.
    """

    providers: frozenset
    names: frozenset
    claims: tuple
    consumers: frozenset
    kept: frozenset = frozenset()

    def differences(self, other):
        """Return the rows that only one of two pictures has, in lines."""
        lines = []
        for part in ("providers", "names", "claims", "consumers", "kept"):
            mine, others = Counter(getattr(self, part)), Counter(getattr(other, part))
            lines += [f"- {row}" for row in sorted((others - mine).elements(), key=str)]
            lines += [f"+ {row}" for row in sorted((mine - others).elements(), key=str)]
        return lines


class WrongNewsError(Exception):
    """A reader's changes contradict what it knows.

    A worker would load everything then, and hide that something was told wrongly.
    """


def followed(store, forest, cursor):
    """Bring a Forest up to date as a worker does; return the new cursor."""
    changes = store.changes(cursor)
    if changes is None:
        return cursor
    if not forest.agrees_with(changes):
        raise WrongNewsError
    forest.apply(changes)
    return changes.cursor


def providers_in(forest):
    """Return what a Forest has of all providers, by names."""
    records = forest.records()
    uuids = {record.id: record.uuid for record in records}
    traits, classes = _names_by_id(forest)
    return frozenset(
        (
            uuids[record.id],
            record.name,
            record.generation,
            uuids.get(record.parent_id, record.parent_id),
            uuids.get(record.root_id, record.root_id),
            tuple(
                sorted(
                    (str(classes.get(stock.class_id)), str(stock.inventory), stock.used)
                    for stock in record.inventories
                )
            ),
            tuple(sorted(str(traits.get(trait_id)) for trait_id in record.links["traits"])),
            record.links["aggregates"],
        )
        for record in records
    )


def names_in(forest):
    """The names of traits and classes that a Forest knows."""
    traits, classes = _names_by_id(forest)
    return frozenset([*traits.values(), *classes.values()])


def _names_by_id(forest):
    catalogue = forest.catalogue
    return (
        {entry.id: entry.name for entry in catalogue.trait_by_id.values()},
        {entry.id: entry.name for entry in catalogue.class_by_id.values()},
    )


class Follower:
    """A worker's Forest, which saw the world before the schedule."""

    def __init__(self, changes):
        self._forest = Forest()
        self._forest.apply(changes)
        self._cursor = changes.cursor

    def look(self, store):
        """Catch up, and return what is known then: the providers and the names.

        One who was told wrongly knows nothing any more.
        """
        try:
            self._cursor = followed(store, self._forest, self._cursor)
        except WrongNewsError:
            self._forest = Forest()
        return providers_in(self._forest), names_in(self._forest)


@dataclass(frozen=True)
class Aftermath:
    """The contents of the database after a schedule.

    Attributes:
        picture: All that clients can see.
        overbooked: (provider, class) with more in use than there is.
        broken: Violated rules, in sentences.
    """

    picture: Picture
    overbooked: frozenset
    broken: tuple[str, ...]

    def told_to(self, store, followers):
        """Return this aftermath, broken too if a reader of the feed does not know the contents."""
        visible = self.picture.providers, self.picture.names
        if _STALE in self.broken or all(follower.look(store) == visible for follower in followers):
            return self
        return replace(self, broken=(*self.broken, _STALE))


def aftermath(store, followers):
    """Look at the database after a schedule.

    Args:
        store: To look with.
        followers: Readers of the feed, some of which have not looked since before the schedule.
    """
    forest = Forest()
    followed(store, forest, None)
    fresh = providers_in(forest), names_in(forest)
    with store.engine.connect() as connection:
        rows = connection.execute(_ALLOCATIONS).all()
        owners = connection.execute(_CONSUMERS).all()
        orphans = connection.execute(_ORPHANS).all()
        kept = [tuple(row) for query in _KEPT for row in connection.execute(query)]
    uuids = {record.id: record.uuid for record in forest.records()}
    _, classes = _names_by_id(forest)
    picture = Picture(
        *fresh,
        claims=tuple(
            sorted(
                (
                    row.consumer_id,
                    uuids.get(row.resource_provider_id, "no provider"),
                    classes.get(row.resource_class_id, "no class"),
                    row.used,
                )
                for row in rows
            )
        ),
        consumers=frozenset(tuple(row) for row in owners),
        kept=frozenset(kept),
    )
    broken = [f"the row of {row.place} belongs to no {row.lost}" for row in orphans]
    broken += _broken_claims(rows, owners, {row[1] for row in kept if row[0] == "draw"})
    return Aftermath(picture, _overbooked(forest), tuple(broken)).told_to(store, followers)


def _broken_claims(rows, owners, drawn):
    # A hold whose room is all drawn keeps its record.
    holding = {row.consumer_id for row in rows} | drawn
    for owner in owners:
        if owner.uuid not in holding:
            yield f"consumer {owner.uuid} has a record and holds nothing"
    for row in rows:
        if row.consumer is None:
            yield f"consumer {row.consumer_id} holds something and has no record"
        if row.inventory is None:
            yield f"consumer {row.consumer_id} holds something of an inventory that is not there"


def _overbooked(forest):
    _, classes = _names_by_id(forest)
    return frozenset(
        (record.uuid, classes.get(stock.class_id))
        for record in forest.records()
        for stock in record.inventories
        if stock.used > stock.inventory.capacity
    )
