# SPDX-License-Identifier: Apache-2.0
"""Names of providers, and what each has of classes, traits and so on, as Python's objects.

They are by **handle**, a number that stands for a provider as long as it exists. So copying
rows copies none of them, and a million of them need never be dropped at once.

Patterns say what inventories consume from others, relative to their own rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from treeclaim.forest.table.columns import Integers
from treeclaim.model.parts import SHOWN_LINKS
from treeclaim.model.provider import ProviderRecord

_MOST_SHARED = 4096
"""Different tuples of which equal ones are found; most clouds have some dozen."""


class Use(NamedTuple):
    """What a unit of an inventory consumes of another one.

    Attributes:
        offset: How many rows the provider consumed of is behind the own one.
        class_id: Id of the class of the inventory consumed.
        amount: Units.
    """

    offset: int
    class_id: int
    amount: int


Uses = tuple[Use, ...]


class Holdings:
    """What providers have, by handle; what it says about unused handles means nothing.

    Attributes:
        names: Names of providers.
        class_ids: Ids of the classes of their inventories, ascending.
        links: What they have of every other part, ascending, by the part's name.
        attribute_names: Names of their attributes, ascending, of those that have any.
        patterns: What their inventories consume.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.class_ids: list[tuple[int, ...]] = []
        self.links: dict[str, list[tuple[Any, ...]]] = {part.name: [] for part in SHOWN_LINKS}
        self.attribute_names: dict[int, tuple[str, ...]] = {}
        self.patterns = Patterns()
        self._shared: dict[tuple[Any, ...], Any] = {}

    def tell(self, records: Sequence[ProviderRecord], handles: Sequence[int]) -> None:
        """Take what records tell of the providers that have some handles."""
        missing = max(handles, default=-1) + 1 - len(self.names)
        if missing > 0:
            self.names.extend([""] * missing)
            for column in (self.class_ids, *self.links.values()):
                column.extend([()] * missing)
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        # Many providers have the same traits and aggregates: one tuple serves them all.
        shared = self._shared.setdefault
        for record, handle in zip(records, handles, strict=True):
            class_ids = tuple([inventory.class_id for inventory in record.inventories])
            self.names[handle] = record.name
            self.class_ids[handle] = shared(class_ids, class_ids)
            attribute_names = tuple(sorted(record.attributes))
            if attribute_names:
                self.attribute_names[handle] = shared(attribute_names, attribute_names)
            else:
                self.attribute_names.pop(handle, None)
            for name, links in self.links.items():
                held = record.links.get(name, ())
                links[handle] = shared(held, held)


class Patterns:
    """What inventories consume, each pattern once; number 0 is that of those that consume nothing.

    Attributes:
        are_any: Whether any inventory has ever consumed another one.
        consumed: Ids of the classes of which anything has been consumed.
    """

    def __init__(self) -> None:
        self._uses: list[Uses] = [()]
        self._numbers: dict[Uses, int] = {(): 0}
        self.are_any = False
        self.consumed: set[int] = set()

    def number_of(self, uses: Iterable[Use]) -> int:
        """Return the number of a pattern, a new one for one that is new."""
        pattern = tuple(sorted(uses))
        number = self._numbers.setdefault(pattern, len(self._uses))
        if number == len(self._uses):
            self._uses.append(pattern)
            self.are_any = True
            self.consumed.update(use.class_id for use in pattern)
        return number

    def __getitem__(self, number: int) -> Uses:
        """Return a pattern by its number."""
        return self._uses[number]

    def among(self, numbers: Integers) -> Iterator[tuple[Uses, Integers]]:
        """Yield each pattern that is among some numbers, and where that is, except for the one of nothing."""
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            if number:
                yield self._uses[number], np.flatnonzero(numbers == number)
