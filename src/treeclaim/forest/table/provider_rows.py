# SPDX-License-Identifier: Apache-2.0
"""The columns of a table of providers, and what is read of them by row."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from treeclaim.forest.table.attributes import AttributeColumns
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import NO_ROW, Column, Rows
from treeclaim.forest.table.consumption import Uses
from treeclaim.forest.table.holdings import Holdings, Memberships
from treeclaim.model.attributes import Attributes, AttributeValue, same_attributes
from treeclaim.model.parts import AGGREGATES, SHOWN_LINKS, TRAITS
from treeclaim.model.provider import Consumed, Provider, ProviderRecord


class ProviderRows:
    """The rows of providers.

    Attributes:
        id, generation, modified_at: Columns of what the store has.
        uuid: Column of `S36` byte strings.
        root, parent, end: Columns of rows: the tree's root, the direct parent (or NO_ROW), and the
            first row behind the provider's subtree.
        alive: Column of truth values; False for rows that were replaced or deleted.
        stamp: Column of numbers, another one after each change of what a row tells.
        handle: Column of what stands for the provider, whatever row it is in; see `RowIndex`.
        classes: Inventories by id of the resource class.
        holdings: Names, and what providers have of classes and every other part, by handle.
        links: Which rows have what of every other part, by the part's name.
        attributes: What rows have of each attribute.
    """

    def __init__(self) -> None:
        self.id = Column(np.int64)
        self.uuid = Column("S36")
        self.generation = Column(np.int64)
        self.modified_at = Column(np.float64)
        self.parent = Column(np.int64)
        self.root = Column(np.int64)
        self.end = Column(np.int64)
        self.alive = Column(np.bool_)
        self.stamp = Column(np.int64)
        self.handle = Column(np.int32)
        self.classes: dict[int, ClassInventories] = {}
        self.holdings = Holdings()
        self.links: dict[str, Memberships[Any]] = {
            part.name: Memberships() for part in SHOWN_LINKS
        }
        self.attributes = AttributeColumns()

    @property
    def trait_links(self) -> Memberships[int]:
        """Return which rows have which traits, by their ids."""
        return self.links[TRAITS.name]

    @property
    def aggregate_links(self) -> Memberships[str]:
        """Return which rows are in which aggregates, by their uuids."""
        return self.links[AGGREGATES.name]

    @property
    def row_count(self) -> int:
        """Return the number of rows, dead ones included."""
        return len(self.id)

    def class_ids_of(self, row: int) -> tuple[int, ...]:
        """Return the ids of the classes that a row has inventories of, ascending."""
        return self.holdings.class_ids[int(self.handle.values[row])]

    def linked(self, part: str, row: int) -> tuple[Any, ...]:
        """Return what a row has of a part, by the part's name, ascending."""
        return self.holdings.links[part][int(self.handle.values[row])]

    def inventory_indices(self, row: int) -> list[tuple[int, int]]:
        """Return where a row's inventories are: class id and index, in order of class id."""
        return [
            (class_id, self.classes[class_id].index_of(row)) for class_id in self.class_ids_of(row)
        ]

    def has_shape_of(self, row: int, attributes: Attributes, record: ProviderRecord) -> bool:
        """Tell whether a row with some attributes differs from a record in what changes in place alone."""
        parent = int(self.parent.values[row])
        parent_id = None if parent == NO_ROW else int(self.id.values[parent])
        # Some databases give the id of a deleted provider to a new one.
        return (
            self.uuid_of(row) == record.uuid
            and parent_id == record.parent_id
            and int(self.id.values[self.root.values[row]]) == record.root_id
            and all(self.linked(name, row) == record.links.get(name, ()) for name in self.links)
            and same_attributes(attributes, record.attributes)
            and self.class_ids_of(row)
            == tuple(inventory.class_id for inventory in record.inventories)
            and self._consumes_as(row, record)
        )

    def _consumes_as(self, row: int, record: ProviderRecord) -> bool:
        """Tell whether the inventories of a row consume what a record of the same classes says."""
        if not self.holdings.patterns.are_any:
            return not any(inventory.consumes for inventory in record.inventories)
        pairs = zip(self.inventory_indices(row), record.inventories, strict=True)
        return all(
            self.consumed_by(row, class_id, index) == inventory.consumes
            for (class_id, index), inventory in pairs
        )

    def uses_of(self, class_id: int, index: int) -> Uses:
        """Return what an inventory consumes, relative to its row."""
        return self.holdings.patterns[int(self.classes[class_id].pattern.values[index])]

    def consumed_by(self, row: int, class_id: int, index: int) -> tuple[Consumed, ...]:
        """Return what an inventory consumes, ascending."""
        uses = self.uses_of(class_id, index)
        if not uses:
            return ()
        consumed = [Consumed(int(self.id.values[row + use.offset]), *use[1:]) for use in uses]
        return tuple(sorted(consumed))

    @property
    def living_rows(self) -> Rows:
        """Return the rows of all providers, ascending."""
        rows: Rows = np.flatnonzero(self.alive.values)
        return rows

    def rows_with_trait(self, trait_id: int) -> Rows:
        """Return the rows of providers that have a trait, ascending."""
        return self.links[TRAITS.name].rows(trait_id, self.alive.values)

    def rows_in_aggregate(self, aggregate: str) -> Rows:
        """Return the rows of providers in an aggregate (uuid, literally), ascending."""
        return self.links[AGGREGATES.name].rows(aggregate, self.alive.values)

    def uuid_of(self, row: int) -> str:
        """Return the uuid of a row."""
        return bytes(self.uuid.values[row]).decode()

    def provider(self, row: int) -> Provider:
        """Return a row as clients see it."""
        parent = int(self.parent.values[row])
        return Provider(
            uuid=self.uuid_of(row),
            name=self.holdings.names[self.handle.values[row]],
            generation=int(self.generation.values[row]),
            parent_uuid=None if parent == NO_ROW else self.uuid_of(parent),
            root_uuid=self.uuid_of(int(self.root.values[row])),
            modified_at=float(self.modified_at.values[row]),
        )

    def names(self, rows: Sequence[int] | Rows) -> list[str]:
        """Return the names of some rows."""
        return [self.holdings.names[handle] for handle in self.handle.values[rows].tolist()]

    def trait_ids(self, row: int) -> tuple[int, ...]:
        """Return the ids of a row's traits, ascending."""
        return self.linked(TRAITS.name, row)

    def aggregates(self, row: int) -> list[str]:
        """Return the aggregates of a row."""
        return list(self.linked(AGGREGATES.name, row))

    def attributes_of(self, row: int) -> dict[str, AttributeValue]:
        """Return the attributes of a row."""
        names = self.holdings.attribute_names.get(int(self.handle.values[row]), ())
        return self.attributes.of_row(row, names)

    def attributes_of_each(self, rows: Rows) -> list[dict[str, AttributeValue]]:
        """Return the attributes of each of some rows, in order of their names."""
        names_by_handle = self.holdings.attribute_names
        names = [names_by_handle.get(handle, ()) for handle in self.handle.values[rows].tolist()]
        return self.attributes.of_rows(rows, names)

    def record(self, row: int) -> ProviderRecord:
        """Return a row as a record."""
        parent = int(self.parent.values[row])
        return ProviderRecord(
            id=int(self.id.values[row]),
            uuid=self.uuid_of(row),
            name=self.holdings.names[self.handle.values[row]],
            generation=int(self.generation.values[row]),
            parent_id=None if parent == NO_ROW else int(self.id.values[parent]),
            root_id=int(self.id.values[self.root.values[row]]),
            modified_at=float(self.modified_at.values[row]),
            inventories=tuple(
                replace(
                    self.classes[class_id].record(index, class_id),
                    consumes=self.consumed_by(row, class_id, index),
                )
                for class_id, index in self.inventory_indices(row)
            ),
            links={name: self.linked(name, row) for name in self.links},
            attributes=self.attributes_of(row),
        )
