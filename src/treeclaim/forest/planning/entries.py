# SPDX-License-Identifier: Apache-2.0
"""Applies wanted states of providers to a Forest, as a batch would write them (contract page 101, section 1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.claim import Omission
from treeclaim.model.errors import (
    CapacityTooSmallError,
    InvalidParentError,
    InventoryInUseError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
    TreeclaimError,
)
from treeclaim.model.extension.batch import (
    MOST_PROBLEMS,
    BatchEntry,
    BatchRefusedError,
    EntryFault,
    Target,
    find_sound_targets,
    find_uuids,
)
from treeclaim.model.extension.errors import ConsumptionError
from treeclaim.model.extension.hierarchy import (
    Hierarchy,
    find_consumption_fault,
    is_at_or_above,
)
from treeclaim.model.names import is_custom_name
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, CONDITIONS, INVENTORIES, TRAITS
from treeclaim.model.provider import (
    Consumption,
    ConsumptionRecord,
    Inventory,
    InventoryRecord,
    ProviderRecord,
)

NOWHERE = Cursor((), ())
"""The position of changes that come from no database."""

_Target = Target[ProviderRecord]


def apply_entries(forest: Forest, entries: Sequence[BatchEntry], budget: Budget) -> None:
    """Apply the wanted states of providers; missing custom traits and classes are created.

    Raises:
        BatchRefusedError: with all faults of the entries; no provider is changed then.
    """
    _Batch(forest, entries, budget).apply()


def find_tree_rows(forest: Forest, uuids: Iterable[str]) -> list[int]:
    """Return all rows of the trees of the providers that exist."""
    rows = [row for row in map(forest.row_of, uuids) if row is not None]
    roots = np.unique(forest.root.values[rows]).tolist() if rows else []
    return [row for root in roots for row in range(root, int(forest.end.values[root]))]


class _Batch:
    def __init__(self, forest: Forest, entries: Sequence[BatchEntry], budget: Budget) -> None:
        self._forest = forest
        self._budget = budget
        self._problems: list[EntryFault] = []
        rows = {entry.name: forest.row_of_name(entry.name) for entry in entries if entry.name}
        holders = {name: forest.uuid_of(row) for name, row in rows.items() if row is not None}
        rows_by_uuid = {uuid: forest.row_of(uuid) for uuid in find_uuids(entries, holders) if uuid}
        records = {
            uuid: forest.record(row) for uuid, row in rows_by_uuid.items() if row is not None
        }
        self._targets = find_sound_targets(entries, holders, records, self._problems)
        self._hierarchy = self._make_hierarchy()
        self._new_uuids = [target.uuid for target in self._targets if target.is_new]
        self._ids: dict[str, int] = {}
        """Ids of the new providers."""

    def apply(self) -> None:
        self._create_names()
        wanted_parents = set(filter(None, self._hierarchy.new_parents.values()))
        known_parents = {
            parent for parent in wanted_parents if self._forest.row_of(parent) is not None
        }
        uuids = known_parents.union(target.uuid for target in self._targets)
        faults = self._hierarchy.find_faults(self._new_uuids, uuids)
        for target in self._targets:
            self._budget.check()
            errors: list[TreeclaimError] = [
                *self._find_name_faults(target),
                *(InvalidParentError(faults[uuid]) for uuid in [target.uuid] if uuid in faults),
                *self._find_inventory_faults(target),
            ]
            self._problems += [EntryFault(target.index, error) for error in errors]
        if self._problems:
            self._problems.sort(key=lambda problem: problem.index)
            raise BatchRefusedError(self._problems[:MOST_PROBLEMS])
        self._ids = self._assign_ids()
        records = list(self._make_records())
        self._require_sound_consumption({record.id: record for record in records})
        self._forest.apply(Changes(NOWHERE, records=records))

    # -- names -----------------------------------------------------------------------------------

    def _create_names(self) -> None:
        """Create the missing custom names, with ids above all existing ids."""
        catalogue = self._forest.catalogue
        traits = self._find_missing_names(catalogue.traits, TRAITS.name)
        classes = self._find_missing_names(catalogue.resource_classes, INVENTORIES.name)
        if traits or classes:
            traits = [*catalogue.traits.values(), *traits]
            classes = [*catalogue.resource_classes.values(), *classes]
            self._forest.apply(Changes(NOWHERE, catalogue=Catalogue.of(traits, classes)))

    def _find_missing_names(
        self, existing_entries: Mapping[str, CatalogueEntry], part: str
    ) -> list[CatalogueEntry]:
        first = max((entry.id for entry in existing_entries.values()), default=0) + 1
        entry_names = {
            name for target in self._targets for name in target.entry.values.get(part, ())
        }
        missing = sorted(filter(is_custom_name, entry_names - existing_entries.keys()))
        return [CatalogueEntry(first + number, name, None) for number, name in enumerate(missing)]

    def _find_name_faults(self, target: _Target) -> Iterator[TreeclaimError]:
        catalogue, values = self._forest.catalogue, target.entry.values
        for name in values.get(INVENTORIES.name, ()):
            if name not in catalogue.resource_classes:
                yield ResourceClassNotFoundError(name)
        missing = sorted(set(values.get(TRAITS.name, ())) - catalogue.traits.keys())
        if missing:
            yield TraitsNotFoundError(missing)

    # -- trees -----------------------------------------------------------------------------------

    def _make_hierarchy(self) -> Hierarchy:
        """Return the current parents in all affected trees, and the wanted parents."""
        parent_by_uuid: dict[str, str | None] = {}
        affected: set[str] = set()
        for target in self._targets:
            parent = target.entry.parent
            if target.is_new:
                parent_by_uuid[target.uuid] = None if isinstance(parent, Omission) else parent
                affected |= {parent_by_uuid[target.uuid] or target.uuid}
            elif not isinstance(parent, Omission) and parent != self._find_parent(target.uuid):
                parent_by_uuid[target.uuid] = parent
                affected |= {target.uuid, parent or target.uuid}
        before: dict[str, str | None] = {}
        for row in find_tree_rows(self._forest, affected):
            self._budget.check()
            uuid = self._forest.uuid_of(row)
            before[uuid] = self._find_parent(uuid)
        return Hierarchy(before, parent_by_uuid)

    def _find_parent(self, uuid: str) -> str | None:
        row = self._forest.row_of(uuid)
        return None if row is None else self._forest.provider(row).parent_uuid

    def _assign_ids(self) -> dict[str, int]:
        """Return ids of the new providers above all existing ids, parents first, as a batch would assign them."""
        living = self._forest.id.values[self._forest.living_rows]
        first = int(living.max()) + 1 if len(living) else 1
        ordered = [
            uuid for wave in self._hierarchy.sort_into_waves(self._new_uuids) for uuid in wave
        ]
        return {uuid: first + number for number, uuid in enumerate(ordered)}

    def _get_id(self, uuid: str) -> int:
        row = self._forest.row_of(uuid)
        return self._ids[uuid] if row is None else int(self._forest.id.values[row])

    # -- providers -------------------------------------------------------------------------------

    def _find_inventory_faults(self, target: _Target) -> Iterator[TreeclaimError]:
        """Yield errors for negative capacities and for deleted classes that are in use."""
        inventories: Mapping[str, Inventory] | None = target.entry.values.get(INVENTORIES.name)
        if inventories is None:
            return
        for name, inventory in inventories.items():
            if inventory.whole_capacity < 0:
                yield CapacityTooSmallError(name, target.uuid, zero_allowed=True)
        names = self._forest.catalogue.class_by_id
        existing = () if target.provider is None else target.provider.inventories
        used_by_class = {
            names[record.class_id].name: record.used
            for record in sorted(existing, key=lambda record: record.class_id)
            if record.used and names[record.class_id].name not in inventories
        }
        if used_by_class:
            yield InventoryInUseError(
                target.uuid, list(used_by_class), next(iter(used_by_class.values()))
            )

    def _make_records(self) -> Iterator[ProviderRecord]:
        """Yield the new records of all providers that change, or that move to another tree."""
        hierarchy = self._hierarchy
        by_uuid = {target.uuid: target for target in self._targets}
        along = hierarchy.find_moved(hierarchy.new_parents.keys() - self._ids.keys())
        touched = list(dict.fromkeys([*by_uuid, *sorted(along)]))
        tops = hierarchy.find_tops(touched)
        for uuid in touched:
            self._budget.check()
            row = self._forest.row_of(uuid)
            record = (
                _make_record(self._ids[uuid], uuid) if row is None else self._forest.record(row)
            )
            # In all other trees, parents and roots stay.
            if uuid in hierarchy.former_parents or uuid in hierarchy.new_parents:
                parent = hierarchy.parent(uuid)
                record = replace(
                    record,
                    parent_id=None if parent is None else self._get_id(parent),
                    root_id=self._get_id(tops[uuid]),
                )
            yield self._apply_values(record, by_uuid[uuid]) if uuid in by_uuid else record

    def _apply_values(self, record: ProviderRecord, target: _Target) -> ProviderRecord:
        values, links = target.entry.values, dict(record.links)
        if TRAITS.name in values:
            traits = self._forest.catalogue.traits
            links[TRAITS.name] = tuple(sorted({traits[name].id for name in values[TRAITS.name]}))
        if AGGREGATES.name in values:
            links[AGGREGATES.name] = tuple(sorted(set(values[AGGREGATES.name])))
        if CONDITIONS.name in values:
            links[CONDITIONS.name] = tuple(values[CONDITIONS.name])
        inventories = record.inventories
        if INVENTORIES.name in values:
            before = {existing.class_id: existing for existing in inventories}
            classes = self._forest.catalogue.resource_classes
            wanted_inventories = {
                classes[name].id: each for name, each in values[INVENTORIES.name].items()
            }
            inventories = tuple(
                InventoryRecord(
                    class_id,
                    inventory,
                    before[class_id].used if class_id in before else 0,
                    0.0,
                    self._read_consumption(target, inventory, before.get(class_id)),
                )
                for class_id, inventory in sorted(wanted_inventories.items(), key=itemgetter(0))
            )
        return replace(
            record,
            name=target.entry.name or record.name,
            links=links,
            inventories=inventories,
            attributes=values.get(ATTRIBUTES.name, record.attributes),
        )

    # -- consumption -----------------------------------------------------------------------------

    def _read_consumption(
        self, target: _Target, inventory: Inventory, before: InventoryRecord | None
    ) -> tuple[ConsumptionRecord, ...]:
        """Return the consumption of a wanted inventory; if the entry omits it, the current one.

        Raises:
            BatchRefusedError: if it names an unknown provider or class.
        """
        if inventory.consumes is None:
            return () if before is None else before.consumes
        classes = self._forest.catalogue.resource_classes
        try:
            entries = [
                ConsumptionRecord(
                    self._get_id(each.provider), classes[each.resource_class].id, each.amount
                )
                for each in inventory.consumes
            ]
        except KeyError as error:
            unknown = ConsumptionError("names what does not exist", inventory.consumes)
            raise BatchRefusedError([EntryFault(target.index, unknown)]) from error
        return tuple(sorted(entries))

    def _require_sound_consumption(self, after: Mapping[int, ProviderRecord]) -> None:
        """Check the consumption of inventories; the first entry gets the faults of providers without an entry."""
        indices = {target.uuid: target.index for target in self._targets}
        problems = [
            EntryFault(indices.get(after[number].uuid, self._targets[0].index), error)
            for number, error in _find_consumption_faults(self._forest, after, self._budget)
        ]
        if problems:
            raise BatchRefusedError(problems)


def _find_consumption_faults(
    forest: Forest, after: Mapping[int, ProviderRecord], budget: Budget
) -> list[tuple[int, TreeclaimError]]:
    """Validate the consumption by and from changed providers (contract page 102, section 2).

    Returns:
        The errors, each with the id of a changed provider.
    """
    is_consuming = any(stock.consumes for record in after.values() for stock in record.inventories)
    if not is_consuming and not forest.holdings.patterns.are_any:
        return []
    ids = {*after, *(record.parent_id for record in after.values() if record.parent_id)}
    rows = map(forest.row_of_id, ids)
    uuids = [forest.uuid_of(row) for row in rows if row is not None]
    before = {each.id: each for each in map(forest.record, find_tree_rows(forest, uuids))}
    records = before | dict(after)
    parents = {record.id: record.parent_id for record in records.values()}
    names = forest.catalogue.class_by_id
    faults = {}
    for record in records.values():
        budget.check()
        existing = before[record.id].inventories if record.id in before else ()
        written_consumption = {(stock.class_id, stock.consumes) for stock in existing}
        for stock in record.inventories:
            for entry in stock.consumes:
                consumed = records.get(entry.provider_id) or _find_record(
                    forest, entry.provider_id
                )
                if consumed is None or {record.id, consumed.id}.isdisjoint(after):
                    continue
                stocks = {each.class_id: each.consumes for each in consumed.inventories}
                error = find_consumption_fault(
                    (record.uuid, names[stock.class_id].name),
                    Consumption(consumed.uuid, names[entry.class_id].name, entry.amount),
                    is_written=(stock.class_id, stock.consumes) not in written_consumption,
                    is_missing=entry.class_id not in stocks,
                    consumes_itself=bool(stocks.get(entry.class_id)),
                    is_at_or_above=is_at_or_above(parents, consumed.id, record.id),
                )
                if error is not None:
                    key = record.id, stock.class_id, consumed.uuid, entry.class_id
                    faults[key] = record.id if record.id in after else consumed.id, error
    return [faults[key] for key in sorted(faults)]


def _find_record(forest: Forest, provider_id: int) -> ProviderRecord | None:
    row = forest.row_of_id(provider_id)
    return None if row is None else forest.record(row)


def _make_record(provider_id: int, uuid: str) -> ProviderRecord:
    links: dict[str, tuple[object, ...]] = {TRAITS.name: (), AGGREGATES.name: ()}
    return ProviderRecord(provider_id, uuid, "", 0, None, provider_id, 0.0, (), links)
