# SPDX-License-Identifier: Apache-2.0
"""The Forest of a topology: the inventory of a service after loading the topology."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.replay.trace_files import problem
from treeclaim.client.topology import PlannedProvider, Topology
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue, CatalogueEntry, Changes, Cursor
from treeclaim.model.inventory import Inventory
from treeclaim.model.parts import AGGREGATES, ATTRIBUTES, TRAITS
from treeclaim.model.provider import InventoryRecord, ProviderRecord


def forest_of(topology: Topology) -> Forest:
    """Return the Forest of a topology, where nothing is allocated.

    Raises:
        ReplayError: if a parent is not in the file before its child.
    """
    traits = {name: number for number, name in enumerate(sorted(topology.traits))}
    classes = {name: number for number, name in enumerate(sorted(topology.classes))}
    records: dict[str, ProviderRecord] = {}
    for number, provider in enumerate(topology.providers, 1):
        above = None if provider.parent is None else provider.parent.name
        if above is not None and above not in records:
            text = f"there is no parent {above!r} above this provider"
            raise problem(topology.source, provider.line, text)
        parent = None if above is None else records[above]
        links = {
            TRAITS.name: tuple(sorted(traits[name] for name in TRAITS.or_empty(provider.values))),
            AGGREGATES.name: tuple(sorted(AGGREGATES.or_empty(provider.values))),
        }
        records[provider.name] = ProviderRecord(
            id=number,
            uuid=provider.uuid,
            name=provider.name,
            generation=0,
            parent_id=None if parent is None else parent.id,
            root_id=number if parent is None else parent.root_id,
            modified_at=0.0,
            inventories=_inventories(provider, classes),
            links=links,
            attributes=ATTRIBUTES.or_empty(provider.values),
        )
    catalogue = Catalogue.of(
        [CatalogueEntry(number, name, 0.0) for name, number in traits.items()],
        [CatalogueEntry(number, name, 0.0) for name, number in classes.items()],
    )
    changes = Changes(
        Cursor({}, None, frozenset()),
        complete=True,
        records=list(records.values()),
        removed=(),
        catalogue=catalogue,
    )
    forest = Forest()
    forest.apply(changes)
    return forest


def _inventories(
    provider: PlannedProvider, classes: Mapping[str, int]
) -> tuple[InventoryRecord, ...]:
    given: Mapping[str, Mapping[str, Any]] = provider.values.get("inventories", {})
    return tuple(
        InventoryRecord(classes[name], Inventory(**given[name]), 0, 0.0)
        for name in sorted(given, key=classes.__getitem__)
    )


def topology_of(source: str, providers: Sequence[PlannedProvider]) -> Topology:
    """Return a topology of providers that no file in its form has."""
    traits = {trait for provider in providers for trait in TRAITS.or_empty(provider.values)}
    classes = {name for provider in providers for name in provider.values.get("inventories", {})}
    return Topology(source, providers, dict.fromkeys(traits, 0), dict.fromkeys(classes, 0))
