# SPDX-License-Identifier: Apache-2.0
"""Wanted states of providers, applied to a Forest (contract page 101, section 1; page 99, section 8).

Who is meant, and what is above what, is judged by the same code as a batch that is written.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.errors import (
    CapacityTooSmallError,
    ConsumptionError,
    InvalidParentError,
    InventoryInUseError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
    TreeclaimError,
)
from treeclaim.model.extension.batches.batch import (
    BatchEntry,
    BatchRefusedError,
    Omission,
    Problem,
)
from treeclaim.model.extension.batches.hierarchy import (
    Hierarchy,
    consumption_fault,
    is_at_or_above,
)
from treeclaim.model.extension.batches.targets import Target, sound_targets, uuids_of
from treeclaim.model.inventory import Consumes, Inventory
from treeclaim.model.names import is_custom_name
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, CONDITIONS, INVENTORIES, TRAITS
from treeclaim.model.provider import Consumed, InventoryRecord, ProviderRecord

NOWHERE = Cursor({}, None, frozenset())
"""The position of changes that come from no database."""

MOST_PROBLEMS = 100
"""Problems that are reported at once."""


def apply_entries(forest: Forest, entries: Sequence[BatchEntry], budget: Budget) -> None:
    """Bring providers to the states that are wanted; custom names that are missing are made.

    Raises:
        BatchRefusedError: with all that is wrong; the providers are as they were then.
    """
    problems: list[Problem] = []
    targets = _targets(forest, entries, problems)
    _make_names(forest, targets)
    _require_names(forest, targets, problems, budget)
    hierarchy = _hierarchy(forest, targets, budget)
    uuids = {target.uuid for target in targets} | {
        parent
        for parent in hierarchy.wanted.values()
        if parent is not None and forest.row_of(parent) is not None
    }
    new = [target.uuid for target in targets if target.is_new]
    faults = hierarchy.faults(new, uuids)
    problems += [
        Problem(target.index, InvalidParentError(faults[target.uuid]))
        for target in targets
        if target.uuid in faults
    ]
    for target in targets:
        budget.check()
        problems += _problems_of_inventories(forest, target)
    if problems:
        problems.sort(key=lambda problem: problem.index)
        raise BatchRefusedError(problems[:MOST_PROBLEMS])
    records = list(_records(forest, targets, hierarchy, budget))
    _require_sound_consumption(forest, targets, records, budget)
    forest.apply(Changes(NOWHERE, complete=False, records=records, removed=(), catalogue=None))


_Target = Target[ProviderRecord]


def _targets(
    forest: Forest, entries: Sequence[BatchEntry], problems: list[Problem]
) -> list[_Target]:
    rows = {entry.name: forest.row_of_name(entry.name) for entry in entries if entry.name}
    holders = {name: forest.uuid_of(row) for name, row in rows.items() if row is not None}
    row_of = {uuid: forest.row_of(uuid) for uuid in uuids_of(entries, holders) if uuid is not None}
    records = {uuid: forest.record(row) for uuid, row in row_of.items() if row is not None}
    return sound_targets(entries, holders, records, problems)


def _named_provider(targets: Iterable[_Target], part: str) -> set[str]:
    return {name for target in targets for name in target.entry.values.get(part, ())}


def _make_names(forest: Forest, targets: Sequence[_Target]) -> None:
    """Make the custom names that are missing, which come behind all others."""
    catalogue = forest.catalogue
    traits = _made(catalogue.traits, _named_provider(targets, TRAITS.name))
    classes = _made(catalogue.resource_classes, _named_provider(targets, INVENTORIES.name))
    if traits or classes:
        catalogue = Catalogue.of(
            [*catalogue.traits.values(), *traits],
            [*catalogue.resource_classes.values(), *classes],
        )
        forest.apply(Changes(NOWHERE, complete=False, records=(), removed=(), catalogue=catalogue))


def _made(existing_entries: Mapping[str, CatalogueEntry], named: set[str]) -> list[CatalogueEntry]:
    first = max((entry.id for entry in existing_entries.values()), default=0) + 1
    missing = sorted(filter(is_custom_name, named - existing_entries.keys()))
    return [CatalogueEntry(first + number, name, None) for number, name in enumerate(missing)]


def _require_names(
    forest: Forest, targets: Sequence[_Target], problems: list[Problem], budget: Budget
) -> None:
    for target in targets:
        budget.check()
        problems += [
            Problem(target.index, ResourceClassNotFoundError(name))
            for name in target.entry.values.get(INVENTORIES.name, ())
            if name not in forest.catalogue.resource_classes
        ]
        named = set(target.entry.values.get(TRAITS.name, ()))
        missing = sorted(named - forest.catalogue.traits.keys())
        if missing:
            problems.append(Problem(target.index, TraitsNotFoundError(missing)))


def _hierarchy(forest: Forest, targets: Sequence[_Target], budget: Budget) -> Hierarchy:
    """Return the parents as they are, of all in the trees concerned, and as they are to be."""
    parent_by_uuid: dict[str, str | None] = {}
    concerned: set[str] = set()
    for target in targets:
        parent = target.entry.parent
        if target.is_new:
            parent_by_uuid[target.uuid] = None if isinstance(parent, Omission) else parent
            concerned |= {parent_by_uuid[target.uuid] or target.uuid}
        elif not isinstance(parent, Omission) and parent != _parent_of(forest, target.uuid):
            parent_by_uuid[target.uuid] = parent
            concerned |= {target.uuid, parent or target.uuid}
    before: dict[str, str | None] = {}
    for row in rows_of_trees(forest, concerned):
        budget.check()
        uuid = forest.uuid_of(row)
        before[uuid] = _parent_of(forest, uuid)
    return Hierarchy(before, parent_by_uuid)


def _parent_of(forest: Forest, uuid: str) -> str | None:
    row = forest.row_of(uuid)
    return None if row is None else forest.provider(row).parent_uuid


def rows_of_trees(forest: Forest, uuids: Iterable[str]) -> list[int]:
    """Return all rows of the trees of some providers; those that do not exist are left out."""
    rows = [row for row in map(forest.row_of, uuids) if row is not None]
    roots = np.unique(forest.root.values[rows]).tolist() if rows else []
    return [row for root in roots for row in range(root, int(forest.end.values[root]))]


def _problems_of_inventories(forest: Forest, target: _Target) -> list[Problem]:
    """Return a problem for each capacity below zero, and for the classes to be deleted that are in use."""
    new_inventories: Mapping[str, Inventory] | None = target.entry.values.get(INVENTORIES.name)
    if new_inventories is None:
        return []
    errors: list[TreeclaimError] = [
        CapacityTooSmallError(name, target.uuid, zero_allowed=True)
        for name, inventory in new_inventories.items()
        if inventory.whole_capacity < 0
    ]
    names = forest.catalogue.class_by_id
    existing = () if target.provider is None else target.provider.inventories
    used = {
        names[record.class_id].name: record.used
        for record in sorted(existing, key=lambda record: record.class_id)
        if record.used and names[record.class_id].name not in new_inventories
    }
    if used:
        errors.append(InventoryInUseError(target.uuid, list(used), next(iter(used.values()))))
    return [Problem(target.index, error) for error in errors]


def _records(
    forest: Forest, targets: Sequence[_Target], hierarchy: Hierarchy, budget: Budget
) -> Iterator[ProviderRecord]:
    """Yield all providers that are different in the end, or in another tree."""
    by_uuid = {target.uuid: target for target in targets}
    new = [target.uuid for target in targets if target.is_new]
    ids = _ids_of_new(forest, hierarchy, new)
    along = hierarchy.moved_along(hierarchy.wanted.keys() - ids.keys())
    touched = list(dict.fromkeys([*by_uuid, *sorted(along)]))
    tops = hierarchy.tops(touched)
    for uuid in touched:
        budget.check()
        row = forest.row_of(uuid)
        record = _empty(ids[uuid], uuid) if row is None else forest.record(row)
        # Of others nothing of the tree is moved.
        if uuid in hierarchy.before or uuid in hierarchy.wanted:
            parent = hierarchy.parent(uuid)
            record = replace(
                record,
                parent_id=None if parent is None else _id_of(forest, ids, parent),
                root_id=_id_of(forest, ids, tops[uuid]),
            )
        yield _brought(forest, record, by_uuid.get(uuid), ids)


def _require_sound_consumption(
    forest: Forest, targets: Sequence[_Target], records: Sequence[ProviderRecord], budget: Budget
) -> None:
    """Check what inventories consume in the end; a fault of one that moves along is the first entry's."""
    after = {record.id: record for record in records}
    indices = {target.uuid: target.index for target in targets}
    problems = [
        Problem(indices.get(after[number].uuid, targets[0].index), error)
        for number, error in _consumption_faults(forest, after, budget)
    ]
    if problems:
        raise BatchRefusedError(problems)


def _consumption_faults(
    forest: Forest, after: Mapping[int, ProviderRecord], budget: Budget
) -> list[tuple[int, TreeclaimError]]:
    """Find what does not hold of the consumption of and from some providers (contract page 102, section 2).

    Returns:
        For each fault the id of one of the providers, and the error.
    """
    is_consuming = any(stock.consumes for record in after.values() for stock in record.inventories)
    if not is_consuming and not forest.holdings.patterns.are_any:
        return []
    numbers = {*after, *(record.parent_id for record in after.values() if record.parent_id)}
    rows = map(forest.row_of_id, numbers)
    uuids = [forest.uuid_of(row) for row in rows if row is not None]
    before = {each.id: each for each in map(forest.record, rows_of_trees(forest, uuids))}
    world = before | dict(after)
    parents = {record.id: record.parent_id for record in world.values()}
    names = forest.catalogue.class_by_id
    faults = {}
    for record in world.values():
        budget.check()
        existing = before[record.id].inventories if record.id in before else ()
        written = {(stock.class_id, stock.consumes) for stock in existing}
        for stock in record.inventories:
            for entry in stock.consumes:
                consumed = world.get(entry.provider_id) or _record(forest, entry.provider_id)
                if consumed is None or {record.id, consumed.id}.isdisjoint(after):
                    continue
                stocks = {each.class_id: each.consumes for each in consumed.inventories}
                error = consumption_fault(
                    (record.uuid, names[stock.class_id].name),
                    Consumes(consumed.uuid, names[entry.class_id].name, entry.amount),
                    is_written=(stock.class_id, stock.consumes) not in written,
                    is_missing=entry.class_id not in stocks,
                    consumes_itself=bool(stocks.get(entry.class_id)),
                    is_at_or_above=is_at_or_above(parents, consumed.id, record.id),
                )
                if error is not None:
                    key = record.id, stock.class_id, consumed.uuid, entry.class_id
                    faults[key] = record.id if record.id in after else consumed.id, error
    return [faults[key] for key in sorted(faults)]


def _record(forest: Forest, number: int) -> ProviderRecord | None:
    row = forest.row_of_id(number)
    return None if row is None else forest.record(row)


def _ids_of_new(forest: Forest, hierarchy: Hierarchy, new: Sequence[str]) -> dict[str, int]:
    """Return ids behind all others: those above before those below, as they would be written."""
    living = forest.id.values[forest.living_rows]
    first = int(living.max()) + 1 if len(living) else 1
    ordered = [uuid for wave in hierarchy.waves(new) for uuid in wave]
    return {uuid: first + number for number, uuid in enumerate(ordered)}


def _id_of(forest: Forest, ids: Mapping[str, int], uuid: str) -> int:
    row = forest.row_of(uuid)
    return ids[uuid] if row is None else int(forest.id.values[row])


def _empty(number: int, uuid: str) -> ProviderRecord:
    links: dict[str, tuple[object, ...]] = {TRAITS.name: (), AGGREGATES.name: ()}
    return ProviderRecord(number, uuid, "", 0, None, number, 0.0, (), links)


def _brought(
    forest: Forest, record: ProviderRecord, target: _Target | None, ids: Mapping[str, int]
) -> ProviderRecord:
    """Return a provider with the values of an entry."""
    if target is None:
        return record
    values = target.entry.values
    links = dict(record.links)
    if TRAITS.name in values:
        traits = forest.catalogue.traits
        links[TRAITS.name] = tuple(sorted({traits[name].id for name in values[TRAITS.name]}))
    if AGGREGATES.name in values:
        links[AGGREGATES.name] = tuple(sorted(set(values[AGGREGATES.name])))
    if CONDITIONS.name in values:
        links[CONDITIONS.name] = tuple(values[CONDITIONS.name])
    inventories = record.inventories
    if INVENTORIES.name in values:
        before = {existing.class_id: existing for existing in inventories}
        new_inventories = {
            forest.catalogue.resource_classes[name].id: inventory
            for name, inventory in values[INVENTORIES.name].items()
        }
        inventories = tuple(
            InventoryRecord(
                class_id,
                inventory,
                before[class_id].used if class_id in before else 0,
                0.0,
                _consumes(forest, target, inventory, before.get(class_id), ids),
            )
            for class_id, inventory in new_inventories.items()
        )
        inventories = tuple(sorted(inventories, key=lambda existing: existing.class_id))
    name = target.entry.name or record.name
    attributes = values.get(ATTRIBUTES.name, record.attributes)
    return replace(record, name=name, links=links, inventories=inventories, attributes=attributes)


def _consumes(
    forest: Forest,
    target: _Target,
    new_inventory: Inventory,
    before: InventoryRecord | None,
    ids: Mapping[str, int],
) -> tuple[Consumed, ...]:
    """Return what an inventory consumes then; where nothing is said of that, it is kept.

    Raises:
        BatchRefusedError: if it names what does not exist.
    """
    if new_inventory.consumes is None:
        return () if before is None else before.consumes
    classes = forest.catalogue.resource_classes
    try:
        entries = [
            Consumed(
                _id_of(forest, ids, entry.provider), classes[entry.resource_class].id, entry.amount
            )
            for entry in new_inventory.consumes
        ]
    except KeyError as error:
        unknown = ConsumptionError("names what does not exist", new_inventory.consumes)
        raise BatchRefusedError([Problem(target.index, unknown)]) from error
    return tuple(sorted(entries))
