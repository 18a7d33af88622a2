# SPDX-License-Identifier: Apache-2.0
"""Sums over the inventories of all matching providers, and of groups of them (page 99, section 3).

The bounds of sums are those of `table/columns.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.listing.groups import By, GroupPage, groups_of
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import (
    Integers,
    Rows,
    expand_ranges,
    search_ascending,
    shown,
    sums_by,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns

Units = npt.NDArray[np.int64]
"""Amounts of a class, each at least 0."""

SUMS = ("total", "reserved", "capacity", "used", "free", "largest_free", "providers")
"""Sums of a class, in the order of the response. `held` follows."""

Totals = dict[str, dict[str, int]]
"""Sums by name of the resource class, in order of the classes' ids."""

_INVENTORIES_TOGETHER = 100_000
"""Inventories that are summed together: one may be in many groups."""


class InventoryAmounts:
    """The amounts of the inventories of some providers."""

    def __init__(
        self,
        forest: Forest,
        rows: Rows,
        held: HeldColumns,
        classes: Iterable[str] | None = None,
    ) -> None:
        """Find the inventories.

        Args:
            forest: All providers.
            rows: The providers, ascending.
            held: Held amounts.
            classes: Names of the classes wanted, which exist; None for all.
        """
        self._names: list[str] = []
        class_ids: list[int] = []
        inventories: list[tuple[ClassInventories, Rows, Rows]] = []
        for name, class_id, columns in _classes(forest, rows, classes):
            at, indices = columns.among(rows)
            if len(at):
                self._names.append(name)
                class_ids.append(class_id)
                inventories.append((columns, at, indices))
        nothing = np.empty(0, dtype=np.int64)
        counts = [len(at) for _, at, _ in inventories]
        self._count = len(rows)
        # The number of the class of each inventory, and the index of its provider among the rows.
        self._class: Integers = np.repeat(np.arange(len(inventories)), counts)
        self._at: Integers = np.concatenate([nothing, *(at for _, at, _ in inventories)])

        def joined(column: str) -> Units:
            parts = [
                getattr(columns, column).values[indices] for columns, _, indices in inventories
            ]
            return np.concatenate([nothing, *parts])

        free, used = joined("free"), joined("used")
        self._summed: dict[str, Units] = {
            "total": joined("total"),
            "reserved": joined("reserved"),
            # Truncating a capacity in the columns loses less than the answer shows.
            "capacity": np.maximum(free + used, 0),
            "used": used,
            "free": np.maximum(free, 0),
            "held": held.of_each(
                forest.id.values[rows][self._at],
                np.repeat(np.array(class_ids, dtype=np.int64), counts),
            ),
        }

    def totals(self) -> Totals:
        """Return the sums over all the providers."""
        sums = self._sums(self._class, slice(None))
        return {self._names[number]: of_class for number, of_class in sums}

    def totals_by_group(
        self, groups: GroupPage, budget: Budget = UNBOUNDED
    ) -> list[dict[str, Any]]:
        """Return the UUID, the name and the sums of each of some groups of the providers."""
        sums: list[Totals] = [{} for _ in groups.labels]
        by_provider = np.argsort(self._at, kind="stable")
        counts = np.bincount(self._at, minlength=self._count)
        starts = counts.cumsum() - counts
        ends = counts[groups.at].cumsum()
        begin = 0
        while begin < len(groups.group):
            budget.check()
            # As many groups as have about so many inventories, one at least.
            most = (int(ends[begin - 1]) if begin else 0) + _INVENTORIES_TOGETHER
            last = min(int(search_ascending(ends, most)), len(groups.group) - 1)
            end = int(search_ascending(groups.group, groups.group[last], side="right"))
            at = groups.at[begin:end]
            which = by_provider[expand_ranges(starts[at], counts[at])]
            group = np.repeat(groups.group[begin:end], counts[at])
            for key, of_class in self._sums(group * len(self._names) + self._class[which], which):
                number, class_number = divmod(key, len(self._names))
                sums[number][self._names[class_number]] = of_class
            begin = end
        return [
            {"uuid": uuid, "name": name, "totals": totals}
            for (uuid, name), totals in zip(groups.labels, sums, strict=True)
        ]

    def _sums(
        self, keys: Integers, which: Integers | slice
    ) -> Iterator[tuple[int, dict[str, int]]]:
        """Yield keys, ascending, with the sums of those of some inventories that have each."""
        distinct_keys, key, counts = np.unique(keys, return_inverse=True, return_counts=True)
        largest = np.zeros(len(distinct_keys), dtype=np.int64)
        np.maximum.at(largest, key, self._summed["free"][which])
        sums = {
            name: sums_by(key, units[which], len(counts)).tolist()
            for name, units in self._summed.items()
        }
        sums |= {"largest_free": list(map(shown, largest.tolist())), "providers": counts.tolist()}
        names = (*SUMS, "held")
        columns = zip(*(sums[name] for name in names), strict=True)
        for distinct_key, values in zip(distinct_keys.tolist(), columns, strict=True):
            yield distinct_key, dict(zip(names, values, strict=True))


def _classes(
    forest: Forest, rows: Rows, classes: Iterable[str] | None
) -> list[tuple[str, int, ClassInventories]]:
    """Return the names, ids and columns of those classes that rows may have, in order of the ids."""
    entry_by_id = forest.catalogue.class_by_id
    if classes is not None:
        entries = [forest.catalogue.resource_classes[name] for name in classes]
        class_ids = {entry.id for entry in entries} & forest.classes.keys()
    elif len(rows) < len(forest.classes):
        class_ids = forest.classes_of(rows)
    else:
        class_ids = set(forest.classes)
    # A deleted class still has columns, without living rows.
    return [
        (entry_by_id[number].name, number, forest.classes[number])
        for number in sorted(class_ids & entry_by_id.keys())
    ]


def totals_of_aggregates(
    forest: Forest, rows: Rows, aggregates: Sequence[str], held: HeldColumns
) -> dict[str, Totals]:
    """Return the sums over the rows that are in each aggregate, or whose root is.

    Args:
        forest: All providers.
        rows: The rows that pass the filters, ascending.
        aggregates: UUIDs; those without a provider are left out.
        held: Held amounts.
    """
    uuids = frozenset(aggregates)
    groups = groups_of(forest, rows, By.AGGREGATE, after="", limit=len(uuids), among=uuids)
    sums = InventoryAmounts(forest, rows, held).totals_by_group(groups)
    return {str(group["uuid"]): group["totals"] for group in sums}
