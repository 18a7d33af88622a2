# SPDX-License-Identifier: Apache-2.0
"""A table of providers with the names of classes and traits: what each has, as clients see it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.provider_table import ProviderTable
from treeclaim.forest.table.texts import InventoryView, summary_fragment, writable
from treeclaim.model.changes import Catalogue, CatalogueEntry
from treeclaim.model.extension.conditions import Condition
from treeclaim.model.inventory import Consumes
from treeclaim.model.parts import CONDITIONS, TRAITS

_NO_INVENTORIES = ClassInventories()


class NamedTable(ProviderTable):
    """A table and a catalogue.

    Attributes:
        catalogue: The traits and resource classes that exist.
    """

    catalogue: Catalogue

    def rename(self, catalogue: Catalogue) -> bool:
        """Take the names of traits and classes; return whether any entry had another name or is gone."""
        before, self.catalogue = self.catalogue, catalogue
        return _has_renamed(before.trait_by_id, catalogue.trait_by_id) or _has_renamed(
            before.class_by_id, catalogue.class_by_id
        )

    def class_inventories(self, name: str) -> ClassInventories:
        """Return the inventories of a class that exists, to be read only."""
        return self.classes.get(self.catalogue.resource_classes[name].id, _NO_INVENTORIES)

    def inventories(self, row: int) -> list[InventoryView]:
        """Return the inventories of a row with their usage, in order of class id."""
        return [
            InventoryView(
                resource_class=self.catalogue.class_by_id[class_id].name,
                inventory=columns.inventory(index),
                used=int(columns.used.values[index]),
                modified_at=float(columns.modified_at.values[index]),
                consumes=self.consumes(row, class_id, index),
            )
            for class_id, index in self.inventory_indices(row)
            for columns in (self.classes[class_id],)
        ]

    def amounts(self, row: int) -> dict[str, Any]:
        """Return what summaries show of the inventories of a row, by class name in order of class id."""
        return {
            self.catalogue.class_by_id[class_id].name: {
                "capacity": writable(self.classes[class_id].whole_capacity(index)),
                "used": self.classes[class_id].used.values.item(index),
            }
            for class_id, index in self.inventory_indices(row)
        }

    def consumes(self, row: int, class_id: int, index: int) -> tuple[Consumes, ...]:
        """Return what an inventory of a row consumes, as clients see it."""
        names = self.catalogue.class_by_id
        entries = [
            (self.uuid_of(row + use.offset), names[use.class_id].name, use.amount)
            for use in self.uses_of(class_id, index)
        ]
        return tuple(Consumes(*entry) for entry in sorted(entries))

    def traits(self, row: int) -> list[str]:
        """Return the names of a row's traits in catalogue order."""
        rank = self.catalogue.trait_rank
        ordered = sorted(self.trait_ids(row), key=lambda trait_id: rank[trait_id])
        return [self.catalogue.trait_by_id[trait_id].name for trait_id in ordered]

    def conditions(self, row: int) -> tuple[Condition, ...]:
        """Return a row's conditions in order of their keys."""
        return self.linked(CONDITIONS.name, row)

    @property
    def has_conditions(self) -> bool:
        """Tell whether any provider has a condition, or had one."""
        return not self.links[CONDITIONS.name].are_none

    def barring(self, tolerated: Collection[str] | None) -> Sequence[Condition]:
        """Return the conditions that have an effect on those who tolerate some keys; None for all.

        There may be some among them that nobody has any more.
        """
        if tolerated is None:
            return ()
        return [each for each in self.links[CONDITIONS.name] if each.counts(tolerated)]

    def associated_traits(self) -> set[str]:
        """Return the names of all traits that some provider has."""
        return {
            self.catalogue.trait_by_id[trait_id].name
            for trait_id in self.links[TRAITS.name]
            if len(self.rows_with_trait(trait_id))
        }

    def summary(self, row: int) -> bytes:
        """Write a row's entry of `provider_summaries` in its full form."""
        return summary_fragment(self.provider(row), self.amounts(row), self.traits(row))


def _has_renamed(before: Mapping[int, CatalogueEntry], now: Mapping[int, CatalogueEntry]) -> bool:
    return any(
        number not in now or now[number].name != entry.name for number, entry in before.items()
    )
