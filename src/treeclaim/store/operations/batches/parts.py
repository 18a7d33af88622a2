# SPDX-License-Identifier: Apache-2.0
"""Inventories, traits and aggregates of many providers, written where they differ."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from treeclaim.model.errors import (
    CapacityTooSmallError,
    InventoryInUseError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
)
from treeclaim.model.extension.batch import Problem
from treeclaim.model.inventory import Inventory
from treeclaim.store.database.transactions import WriteTransaction, chunks
from treeclaim.store.operations.batches.targets import Target
from treeclaim.store.operations.catalogue.traits import traits_named
from treeclaim.store.operations.locks.class_ids import locked_ids_of, names_of
from treeclaim.store.operations.locks.lock_rows import PARTS, take_lock_rows
from treeclaim.store.operations.providers import aggregates
from treeclaim.store.reading.inventory_columns import INVENTORY_COLUMNS
from treeclaim.store.schema.tables import (
    allocations,
    inventories,
    resource_classes,
    resource_provider_aggregates,
    resource_provider_traits,
)

_FIELDS = tuple(column.name for column in INVENTORY_COLUMNS)
_PRESENT = sa.select(
    inventories.c.resource_provider_id, inventories.c.resource_class_id, *INVENTORY_COLUMNS
).where(inventories.c.resource_provider_id.in_(sa.bindparam("ids", expanding=True)))
_INSERT = sa.insert(inventories)
_OF_CLASS = (
    inventories.c.resource_provider_id == sa.bindparam("provider_id"),
    inventories.c.resource_class_id == sa.bindparam("class_id"),
)
_UPDATE = (
    sa.update(inventories)
    .where(*_OF_CLASS)
    .values({name: sa.bindparam(f"new_{name}") for name in (*_FIELDS, "updated_at")})
)
_DELETE = sa.delete(inventories).where(*_OF_CLASS)
_USED = (
    sa.select(
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        sa.func.sum(allocations.c.used),
    )
    .where(allocations.c.resource_provider_id.in_(sa.bindparam("ids", expanding=True)))
    .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
)


def known_classes(
    transaction: WriteTransaction, targets: Sequence[Target], problems: list[Problem]
) -> Mapping[str, int]:
    """Return the ids of all classes named, locked; note each that does not exist."""
    named = {name for target in targets for name in target.entry.inventories or ()}
    if not named:
        return {}
    existing = {
        row.name
        for chunk in chunks(sorted(named))
        for row in transaction.rows(
            sa.select(resource_classes.c.name).where(resource_classes.c.name.in_(chunk))
        )
    }
    problems += [
        Problem(target.index, ResourceClassNotFoundError(name))
        for target in targets
        for name in target.entry.inventories or ()
        if name not in existing
    ]
    return locked_ids_of(transaction, sorted(named & existing))


def known_traits(
    transaction: WriteTransaction, targets: Sequence[Target], problems: list[Problem]
) -> Mapping[str, int]:
    """Return the ids of all traits named; note those that do not exist."""
    named = {name for target in targets for name in target.entry.traits or ()}
    found = {name: row.id for name, row in traits_named(transaction, named).items()}
    for target in targets:
        missing = sorted(set(target.entry.traits or ()) - found.keys())
        if missing:
            problems.append(Problem(target.index, TraitsNotFoundError(missing)))
    return found


def set_inventories(
    transaction: WriteTransaction,
    targets: Sequence[Target],
    class_ids: Mapping[str, int],
    problems: list[Problem],
) -> None:
    """Make the named inventories all that the providers have."""
    some = [target for target in targets if target.entry.inventories is not None]
    present = _present(transaction, [target.row.id for target in some if not target.is_new])
    changes = _Changes(transaction.now)
    gone: dict[int, tuple[Target, set[int]]] = {}
    for target in some:
        wanted = {
            class_ids[name]: inventory
            for name, inventory in (target.entry.inventories or {}).items()
            if name in class_ids
        }
        problems += _too_small(target)
        if target.provider is None:
            # It was not created, because something is wrong.
            continue
        before = present.get(target.row.id, {})
        if wanted == before:
            continue
        target.changed.append("inventories")
        if removed := before.keys() - wanted.keys():
            gone[target.row.id] = target, set(removed)
        changes.note(target.row.id, before, wanted)
    problems += _in_use(transaction, gone)
    if not problems:
        changes.write(transaction)


def _too_small(target: Target) -> list[Problem]:
    return [
        Problem(
            target.index,
            CapacityTooSmallError(name, target.uuid, zero_allowed=True),
        )
        for name, inventory in (target.entry.inventories or {}).items()
        if inventory.whole_capacity < 0
    ]


def _present(transaction: WriteTransaction, ids: Sequence[int]) -> dict[int, dict[int, Inventory]]:
    found: dict[int, dict[int, Inventory]] = defaultdict(dict)
    for chunk in chunks(ids):
        for provider_id, class_id, *amounts in transaction.rows(_PRESENT, ids=chunk):
            found[provider_id][class_id] = Inventory(*amounts)
    return found


def _in_use(
    transaction: WriteTransaction, gone: Mapping[int, tuple[Target, set[int]]]
) -> list[Problem]:
    """Return a problem for each inventory that is to go and of which something is used."""
    problems = []
    for ids in chunks(sorted(gone)):
        for provider_id, class_id, used in transaction.rows(_USED, ids=ids):
            target, classes = gone[provider_id]
            if class_id in classes:
                name = names_of(transaction, [class_id]).get(class_id, str(class_id))
                problems.append(
                    Problem(target.index, InventoryInUseError(target.uuid, [name], int(used)))
                )
    return problems


class _Changes:
    """Rows of inventories to insert, update and delete."""

    def __init__(self, now: Any) -> None:
        self._now = now
        self._new: list[dict[str, Any]] = []
        self._other: list[dict[str, Any]] = []
        self._gone: list[dict[str, Any]] = []

    def note(
        self, provider_id: int, before: Mapping[int, Inventory], wanted: Mapping[int, Inventory]
    ) -> None:
        """Note what is to be done to a provider's inventories."""
        for class_id, inventory in sorted(wanted.items()):
            amounts = asdict(inventory)
            if class_id not in before:
                key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
                self._new.append({**key, "created_at": self._now, **amounts})
            elif before[class_id] != inventory:
                new = {f"new_{name}": value for name, value in amounts.items()}
                key = {"provider_id": provider_id, "class_id": class_id}
                self._other.append({**key, "new_updated_at": self._now, **new})
        self._gone += [
            {"provider_id": provider_id, "class_id": class_id}
            for class_id in sorted(before.keys() - wanted.keys())
        ]

    def write(self, transaction: WriteTransaction) -> None:
        """Do it."""
        transaction.execute_each(_DELETE, self._gone)
        transaction.execute_each(_UPDATE, self._other)
        transaction.execute_each(_INSERT, self._new)


def set_traits(
    transaction: WriteTransaction, targets: Sequence[Target], trait_ids: Mapping[str, int]
) -> None:
    """Make the named traits all that the providers have."""
    _set_members(
        transaction,
        "traits",
        resource_provider_traits,
        "trait_id",
        {
            target.row.id: (target, {trait_ids[name] for name in target.entry.traits})
            for target in targets
            if target.entry.traits is not None
        },
    )


def set_aggregates(transaction: WriteTransaction, targets: Sequence[Target]) -> None:
    """Make the named aggregates those of the providers; create new ones."""
    named = {uuid for target in targets for uuid in target.entry.aggregates or ()}
    ids = aggregates.ids_by_uuid(transaction, sorted(named))
    wanted = {
        target.row.id: (target, {ids[uuid] for uuid in target.entry.aggregates})
        for target in targets
        if target.entry.aggregates is not None
    }
    take_lock_rows(transaction, PARTS, wanted.keys())
    _set_members(transaction, "aggregates", resource_provider_aggregates, "aggregate_id", wanted)


def _set_members(
    transaction: WriteTransaction,
    part: str,
    table: sa.Table,
    column: str,
    wanted: Mapping[int, tuple[Target, Iterable[int]]],
) -> None:
    """Make these the rows of an association, by id of the provider."""
    present: dict[int, set[int]] = defaultdict(set)
    existing = [provider_id for provider_id, (target, _) in wanted.items() if not target.is_new]
    for ids in chunks(existing):
        of_them = table.c.resource_provider_id.in_(ids)
        for provider_id, member in transaction.rows(
            sa.select(table.c.resource_provider_id, table.c[column]).where(of_them)
        ):
            present[provider_id].add(member)
    new, gone = [], []
    for provider_id, (target, members) in wanted.items():
        before, after = present[provider_id], set(members)
        if before == after:
            continue
        target.changed.append(part)
        key = {"resource_provider_id": provider_id, "created_at": transaction.now}
        new += [{**key, column: member} for member in sorted(after - before)]
        gone += [{"of": provider_id, "member": member} for member in sorted(before - after)]
    transaction.execute_each(
        sa.delete(table).where(
            table.c.resource_provider_id == sa.bindparam("of"),
            table.c[column] == sa.bindparam("member"),
        ),
        gone,
    )
    transaction.execute_each(sa.insert(table), new)
