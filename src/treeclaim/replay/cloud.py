# SPDX-License-Identifier: Apache-2.0
"""The Forest of a topology: what a service would have after it was loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treeclaim.client.topology import PlannedProvider, Topology
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.inventory import MAXIMUM_INTEGER, Inventory
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, TRAITS
from treeclaim.model.provider import InventoryRecord, ProviderRecord
from treeclaim.replay.files import problem, quoted


@dataclass(frozen=True, slots=True)
class _Names:
    """Ids by name."""

    traits: Mapping[str, int]
    classes: Mapping[str, int]


def forest_of(topology: Topology) -> Forest:
    """Return the Forest of a topology, where nothing is allocated.

    Raises:
        ReplayError: if a parent is not in the file, or a number is too large.
    """
    providers = topology.providers
    ids = {provider.name: number for number, provider in enumerate(providers, 1)}
    parents = _parents(topology)
    names = _Names(
        {name: number for number, name in enumerate(sorted(topology.traits))},
        {name: number for number, name in enumerate(sorted(topology.classes))},
    )
    roots = _roots(parents)
    records = [
        ProviderRecord(
            id=ids[provider.name],
            uuid=provider.uuid,
            name=provider.name,
            generation=0,
            parent_id=None if (above := parents[provider.name]) is None else ids[above],
            root_id=ids[roots[provider.name]],
            modified_at=0.0,
            inventories=_inventories(topology.source, provider, names),
            links={
                TRAITS.name: tuple(
                    sorted(names.traits[trait] for trait in TRAITS.or_empty(provider.values))
                ),
                AGGREGATES.name: tuple(sorted(AGGREGATES.or_empty(provider.values))),
            },
            attributes=ATTRIBUTES.or_empty(provider.values),
        )
        for provider in providers
    ]
    catalogue = Catalogue.of(
        [CatalogueEntry(number, name, 0.0) for name, number in names.traits.items()],
        [CatalogueEntry(number, name, 0.0) for name, number in names.classes.items()],
    )
    forest = Forest()
    forest.apply(
        Changes(
            Cursor({}, None, frozenset()),
            complete=True,
            records=records,
            removed=(),
            catalogue=catalogue,
        )
    )
    return forest


def _parents(topology: Topology) -> Mapping[str, str | None]:
    """Return the name of the parent of each provider by its name; None for a root.

    Raises:
        ReplayError: if a parent is not in the file.
    """
    names = {provider.name for provider in topology.providers}
    by_uuid = {provider.uuid: provider.name for provider in topology.providers}
    parents: dict[str, str | None] = {}
    for provider in topology.providers:
        above = provider.parent
        if above is None or above.name is None:
            parents[provider.name] = None
            continue
        parent = above.name if above.name in names else by_uuid.get(above.name.lower())
        if parent is None:
            text = f"there is no parent {quoted(above.name)} in the file"
            raise problem(topology.source, above.line, text)
        parents[provider.name] = parent
    return parents


def _roots(parents: Mapping[str, str | None]) -> Mapping[str, str]:
    roots: dict[str, str] = {}
    for name in parents:
        way = [name]
        while way[-1] not in roots and (above := parents[way[-1]]) is not None:
            way.append(above)
        root = roots.get(way[-1], way[-1])
        roots.update(dict.fromkeys(way, root))
    return roots


def _inventories(
    source: str, provider: PlannedProvider, names: _Names
) -> tuple[InventoryRecord, ...]:
    given: Mapping[str, Mapping[str, Any]] = provider.values.get("inventories", {})
    records = []
    for name, values in sorted(given.items(), key=lambda item: names.classes[item[0]]):
        inventory = Inventory(
            total=values["total"],
            reserved=values.get("reserved", 0),
            min_unit=values.get("min_unit", 1),
            max_unit=values.get("max_unit", MAXIMUM_INTEGER),
            step_size=values.get("step_size", 1),
            allocation_ratio=values.get("allocation_ratio", 1.0),
        )
        wrong = [
            key
            for key, value in values.items()
            if isinstance(value, int) and value > MAXIMUM_INTEGER
        ]
        if wrong or inventory.total < 1:
            key = wrong[0] if wrong else "total"
            text = f"{key} of {quoted(name)} is {quoted(values[key])}"
            raise problem(source, provider.line, text)
        records.append(InventoryRecord(names.classes[name], inventory, 0, 0.0))
    return tuple(records)


def topology_of(source: str, providers: Sequence[PlannedProvider]) -> Topology:
    """Return a topology of providers that no file in its form has."""
    traits = {trait for provider in providers for trait in TRAITS.or_empty(provider.values)}
    classes = {name for provider in providers for name in provider.values.get("inventories", {})}
    return Topology(source, providers, dict.fromkeys(traits, 0), dict.fromkeys(classes, 0))
