# SPDX-License-Identifier: Apache-2.0
"""How each part of many providers is written, where it differs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import sqlalchemy as sa

from treeclaim.model.errors import (
    CapacityTooSmallError,
    ConsumptionError,
    InventoryInUseError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
    TreeclaimError,
)
from treeclaim.model.extension.batches.batch import BatchRefusedError, Problem
from treeclaim.model.inventory import Consumes, Inventory
from treeclaim.model.names import is_custom_name
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, INVENTORIES, TRAITS, ProviderPart
from treeclaim.store.database.transactions import Key, WriteTransaction, chunks
from treeclaim.store.operations.batches.targets import Target
from treeclaim.store.operations.catalogue import resource_classes, traits
from treeclaim.store.operations.locks.class_ids import locked_ids_of, names_of
from treeclaim.store.operations.locks.consumed import of_ids
from treeclaim.store.operations.locks.lock_rows import PARTS as LOCKS
from treeclaim.store.operations.locks.lock_rows import take_lock_rows
from treeclaim.store.operations.providers import aggregates, attributes, consumption
from treeclaim.store.reading.inventories import INVENTORY_COLUMNS
from treeclaim.store.schema import tables
from treeclaim.store.schema.tables import allocations, inventories

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


_AT_ONCE = 100
"""Providers whose part is read by one statement: each may have hundreds of rows, and each statement looks
at the deadline."""


class PartWriter:
    """Brings one part of the providers of a batch to what the entries say.

    Its methods are called in this order, each for all parts; nothing is written while there is a
    problem.

    Attributes:
        part: Which.
    """

    part: ClassVar[ProviderPart[Any]]

    def __init__(self, transaction: WriteTransaction, targets: Sequence[Target]) -> None:
        self._transaction = transaction
        self._all = targets
        self._targets = [target for target in targets if self.part.name in target.entry.values]
        self._named = {name for target in self._targets for name in self._value(target)}

    def _value(self, target: Target) -> Any:
        return target.entry.values[self.part.name]

    def create_names(self) -> None:
        """Make what is missing of the custom names."""

    def look_up(self, problems: list[Problem]) -> None:
        """Find out the ids of what is named; note what does not exist."""

    def judge(self, problems: list[Problem]) -> None:
        """Note what cannot be, now that the providers are in their places."""

    def write(self) -> None:
        """Write what differs, and note at each target whether something did."""
        raise NotImplementedError

    def check(self) -> None:
        """Judge what can be judged only of what is written.

        Raises:
            BatchRefusedError: if that must not be.
        """


class _Inventories(PartWriter):
    part = INVENTORIES

    def __init__(self, transaction: WriteTransaction, targets: Sequence[Target]) -> None:
        super().__init__(transaction, targets)
        self._changes = _Changes(transaction.now)
        self._class_ids: Mapping[str, int] = {}
        self._consumes: dict[Key, Sequence[Consumes]] = {}
        """What inventories are to consume, where that changes."""

    def create_names(self) -> None:
        for name in sorted(filter(is_custom_name, self._named)):
            resource_classes.ensure(self._transaction, name)

    def look_up(self, problems: list[Problem]) -> None:
        """Lock the classes too."""
        if not self._named:
            return
        existing = {
            row.name
            for chunk in chunks(sorted(self._named))
            for row in self._transaction.rows(
                sa.select(tables.resource_classes.c.name).where(
                    tables.resource_classes.c.name.in_(chunk)
                )
            )
        }
        for target in self._targets:
            self._transaction.look()
            problems += [
                Problem(target.index, ResourceClassNotFoundError(name))
                for name in self._value(target)
                if name not in existing
            ]
        self._class_ids = locked_ids_of(self._transaction, sorted(self._named & existing))

    def judge(self, problems: list[Problem]) -> None:
        present = self._present()
        gone: dict[int, tuple[Target, set[int]]] = {}
        for target in self._targets:
            self._transaction.look()
            problems += self._too_small(target)
            if target.provider is None:
                # It was not created, because something is wrong.
                continue
            wanted = {
                self._class_ids[name]: inventory
                for name, inventory in self._value(target).items()
                if name in self._class_ids
            }
            before = present.get(target.row.id, {})
            given = self._consumption(target, wanted)
            if not given and _amounts(wanted) == _amounts(before):
                continue
            target.changed.append(self.part.name)
            if removed := before.keys() - wanted.keys():
                gone[target.row.id] = target, set(removed)
            self._changes.note(target.row.id, before, wanted)
            self._consumes |= given
        problems += self._in_use(gone)

    def write(self) -> None:
        """Write what they consume too.

        Raises:
            BatchRefusedError: if one would consume what does not exist.
        """
        self._changes.write(self._transaction)
        for key, entries in self._consumes.items():
            try:
                consumption.write(self._transaction, {key: entries})
            except ConsumptionError as error:
                raise BatchRefusedError([self._problem(key[0], error)]) from error

    def check(self) -> None:
        """Judge what inventories consume, once all exist and are in their places.

        Raises:
            BatchRefusedError: if one consumes what it must not, or is consumed and would go, or the two
                would be parted.
        """
        ids = {target.row.id for target in self._all if target.changed}
        ids |= self._transaction.touched_providers.keys()
        problems = [
            self._problem(provider_id, error)
            for provider_id, error in consumption.faults(self._transaction, ids, self._consumes)
        ]
        if problems:
            raise BatchRefusedError(problems)

    def _problem(self, provider_id: int, error: TreeclaimError) -> Problem:
        """Return a fault of the entry of a provider, or, for one that moves along, of the first."""
        indices = {target.row.id: target.index for target in self._all}
        return Problem(indices.get(provider_id, self._all[0].index), error)

    def _consumption(
        self, target: Target, wanted: Mapping[int, Inventory]
    ) -> dict[Key, Sequence[Consumes]]:
        """Return what inventories of a provider are to consume that do not yet."""
        given = {
            (target.row.id, class_id): inventory.consumes
            for class_id, inventory in wanted.items()
            if inventory.consumes is not None
        }
        if not given:
            return {}
        before = of_ids(self._transaction, [target.row.id])
        resolved = consumption.resolved(self._transaction, given)
        return {
            key: entries
            for key, entries in given.items()
            if len(resolved[key]) != len(entries) or not consumption.same_as(before, resolved, key)
        }

    def _too_small(self, target: Target) -> list[Problem]:
        return [
            Problem(target.index, CapacityTooSmallError(name, target.uuid, zero_allowed=True))
            for name, inventory in self._value(target).items()
            if inventory.whole_capacity < 0
        ]

    def _present(self) -> dict[int, dict[int, Inventory]]:
        found: dict[int, dict[int, Inventory]] = defaultdict(dict)
        existing = [target.row.id for target in self._targets if not target.is_new]
        for chunk in chunks(existing, _AT_ONCE):
            for provider_id, class_id, *amounts in self._transaction.rows(_PRESENT, ids=chunk):
                found[provider_id][class_id] = Inventory(*amounts)
        return found

    def _in_use(self, gone: Mapping[int, tuple[Target, set[int]]]) -> list[Problem]:
        """Return a problem for each inventory that is to be removed but is in use."""
        problems = []
        for ids in chunks(sorted(gone)):
            for provider_id, class_id, used in self._transaction.rows(_USED, ids=ids):
                target, classes = gone[provider_id]
                if class_id in classes:
                    names = names_of(self._transaction, [class_id])
                    name = names.get(class_id, str(class_id))
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
            amounts = inventory.amounts
            if class_id not in before:
                key = {"resource_provider_id": provider_id, "resource_class_id": class_id}
                self._new.append({**key, "created_at": self._now, **amounts})
            elif before[class_id].amounts != inventory.amounts:
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
        consumption.forget(
            transaction,
            {row["provider_id"] for row in self._gone}
            | {row["resource_provider_id"] for row in self._new},
        )
        transaction.execute_each(_INSERT, self._new)


def _amounts(inventories_by_class: Mapping[int, Inventory]) -> dict[int, Any]:
    return {class_id: inventory.amounts for class_id, inventory in inventories_by_class.items()}


class _Links(PartWriter):
    """Writes the rows of an association.

    Attributes:
        table: The association.
        column: What it has of each provider.
    """

    table: ClassVar[sa.Table]
    column: ClassVar[str]

    def others(self, value: Any) -> set[Any]:
        """Return what the column is to have of a provider with a value."""
        raise NotImplementedError

    def write(self) -> None:
        present = self._present()
        new, gone = [], []
        for target in self._targets:
            self._transaction.look()
            provider_id = target.row.id
            before, after = present[provider_id], self.others(self._value(target))
            if before == after:
                continue
            target.changed.append(self.part.name)
            key = {"resource_provider_id": provider_id, "created_at": self._transaction.now}
            new += [{**key, self.column: other} for other in sorted(after - before)]
            gone += [{"of": provider_id, "other": other} for other in sorted(before - after)]
        self._transaction.execute_each(
            sa.delete(self.table).where(
                self.table.c.resource_provider_id == sa.bindparam("of"),
                self.table.c[self.column] == sa.bindparam("other"),
            ),
            gone,
        )
        self._transaction.execute_each(sa.insert(self.table), new)

    def _present(self) -> dict[int, set[Any]]:
        found: dict[int, set[Any]] = defaultdict(set)
        existing = [target.row.id for target in self._targets if not target.is_new]
        for ids in chunks(existing, _AT_ONCE):
            of_them = self.table.c.resource_provider_id.in_(ids)
            for provider_id, other in self._transaction.rows(
                sa.select(self.table.c.resource_provider_id, self.table.c[self.column]).where(
                    of_them
                )
            ):
                found[provider_id].add(other)
        return found


class _Traits(_Links):
    part = TRAITS
    table = tables.resource_provider_traits
    column = "trait_id"

    def create_names(self) -> None:
        known = traits.traits_named(self._transaction, self._named)
        for name in sorted(filter(is_custom_name, self._named - known.keys())):
            traits.ensure(self._transaction, name)

    def look_up(self, problems: list[Problem]) -> None:
        self._found = traits.traits_named(self._transaction, self._named)
        for target in self._targets:
            self._transaction.look()
            missing = sorted(set(self._value(target)) - self._found.keys())
            if missing:
                problems.append(Problem(target.index, TraitsNotFoundError(missing)))

    def others(self, value: Any) -> set[Any]:
        return {self._found[name].id for name in value}


class _Aggregates(_Links):
    part = AGGREGATES
    table = tables.resource_provider_aggregates
    column = "aggregate_id"

    def write(self) -> None:
        """Create those that do not exist, too."""
        self._ids = aggregates.ids_by_uuid(self._transaction, sorted(self._named))
        take_lock_rows(self._transaction, LOCKS, [target.row.id for target in self._targets])
        super().write()

    def others(self, value: Any) -> set[Any]:
        return {self._ids[uuid] for uuid in value}


class _Attributes(PartWriter):
    part = ATTRIBUTES

    def write(self) -> None:
        for targets in chunks(self._targets, _AT_ONCE):
            wanted = {
                target.row.id: attributes.texts_of(self._value(target)) for target in targets
            }
            before = attributes.present(self._transaction, sorted(wanted))
            for target in targets:
                if before[target.row.id] != wanted[target.row.id]:
                    target.changed.append(self.part.name)
            attributes.change(self._transaction, before, wanted)


WRITERS: Sequence[type[PartWriter]] = (_Inventories, _Traits, _Aggregates, _Attributes)
"""One for each part."""
