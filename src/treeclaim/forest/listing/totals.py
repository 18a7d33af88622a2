# SPDX-License-Identifier: Apache-2.0
"""Sums over the inventories of all matching providers, and of groups of them (page 99, section 3).

The amounts are first copied out of the Forest, in milliseconds. All else works on the copies, so that
no other request waits while ten thousand groups are summed up.

The bounds of sums are those of `table/sums.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.listing.groups import By, Groups, groups_of
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import Integers, Rows, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns
from treeclaim.forest.table.sums import shown, sums_by

Units = npt.NDArray[np.int64]
"""Amounts of a class, each at least 0."""

SUMS = ("total", "reserved", "capacity", "used", "free", "largest_free", "providers")
"""Sums of a class, in the order of the response. `held` follows where held amounts are known."""

Totals = dict[str, dict[str, int]]
"""Sums by name of the resource class, in order of the classes' ids."""

_SUMS_BETWEEN_CHECKS = 1_000
_INVENTORIES_TOGETHER = 100_000

_GROUPS_FOR_A_CLASS = 32
"""Lists of members that are copied in the time that the columns of a class take."""


def _unlimited() -> None:
    """Check no deadline."""


@dataclass(frozen=True, slots=True)
class InventoryAmounts:
    """Inventories copied out of the Forest, by class; arrays have one item for each inventory.

    Attributes:
        names, class_ids: Names and ids of the classes, in order of their ids.
        ids: Ids of the providers that pass.
        groups: Groups of these providers; None without groups.
        number: The index of each inventory's class, ascending.
        at: The index of each inventory's provider.
        total, reserved, capacity, used, free: Amounts.
        held: Held amounts; None where they are not of interest.
    """

    names: Sequence[str]
    class_ids: Sequence[int]
    ids: Rows
    groups: Groups | None
    number: Integers
    at: Integers
    total: Units
    reserved: Units
    capacity: Units
    used: Units
    free: Units
    held: Units | None = None

    def with_held(self, held: HeldColumns) -> "InventoryAmounts":
        """Return the same amounts with those of holds at the same moment."""
        class_ids = np.array(self.class_ids, dtype=np.int64)[self.number]
        return replace(self, held=held.of_each(self.ids[self.at], class_ids))

    def totals(self) -> Totals:
        """Return the sums over all providers that pass."""
        sums = self._sums(self.number, slice(None), _unlimited)
        return {self.names[number]: of_class for number, of_class in sums}

    def totals_by_group(
        self, check_deadline: Callable[[], None] = _unlimited
    ) -> list[dict[str, Any]]:
        """Return the UUID, the name and the sums of each group of the page.

        Args:
            check_deadline: Called again and again; raises where the time is over.
        """
        groups = self.groups
        if groups is None:
            return []
        sums: list[Totals] = [{} for _ in groups.labels]
        by_provider = np.argsort(self.at, kind="stable")
        counts = np.bincount(self.at, minlength=len(self.ids))
        starts = counts.cumsum() - counts
        ends = counts[groups.at].cumsum()
        begin = 0
        while begin < len(groups.group):
            check_deadline()
            # As many groups as have about so many inventories, one at least.
            most = (int(ends[begin - 1]) if begin else 0) + _INVENTORIES_TOGETHER
            last = min(int(search_ascending(ends, most)), len(groups.group) - 1)
            end = int(search_ascending(groups.group, groups.group[last], side="right"))
            at = groups.at[begin:end]
            several = counts[at]
            offset = np.arange(int(several.sum())) - np.repeat(several.cumsum() - several, several)
            which = by_provider[np.repeat(starts[at], several) + offset]
            group = np.repeat(groups.group[begin:end], several)
            keys = group * len(self.names) + self.number[which]
            for key, of_class in self._sums(keys, which, check_deadline):
                number, class_number = divmod(key, len(self.names))
                sums[number][self.names[class_number]] = of_class
            begin = end
        check_deadline()
        return [
            {"uuid": uuid, "name": name, "totals": totals}
            for (uuid, name), totals in zip(groups.labels, sums, strict=True)
        ]

    def _sums(
        self, keys: Integers, which: Integers | slice, check_deadline: Callable[[], None]
    ) -> Iterator[tuple[int, dict[str, int]]]:
        """Yield keys, ascending, with the sums of those of some inventories that have each."""
        distinct_keys, key, counts = np.unique(keys, return_inverse=True, return_counts=True)
        largest = np.zeros(len(distinct_keys), dtype=np.int64)
        np.maximum.at(largest, key, self.free[which])
        summed = [self.total, self.reserved, self.capacity, self.used, self.free]
        names: Sequence[str] = SUMS
        if self.held is not None:
            summed.append(self.held)
            names = (*SUMS, "held")
        columns = [sums_by(key, units[which], len(counts)).tolist() for units in summed]
        columns[5:5] = [list(map(shown, largest.tolist())), counts.tolist()]
        for number, (distinct_key, *sums) in enumerate(
            zip(distinct_keys.tolist(), *columns, strict=True)
        ):
            if not number % _SUMS_BETWEEN_CHECKS:
                check_deadline()
            yield distinct_key, dict(zip(names, sums, strict=True))


def amounts_of(
    forest: Forest,
    rows: Rows,
    classes: Iterable[str] | None = None,
    groups: Groups | None = None,
) -> InventoryAmounts:
    """Copy the inventories of some rows out of the Forest.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        classes: Names of the classes wanted, which exist; None for all.
        groups: Groups of the rows, if these are of interest.
    """
    names, class_ids, inventories = [], [], []
    for name, class_id, columns in _classes(forest, rows, classes):
        at, indices = columns.among(rows)
        if len(at):
            names.append(name)
            class_ids.append(class_id)
            inventories.append((columns, at, indices))
    nothing = np.empty(0, dtype=np.int64)

    def joined(column: str) -> Units:
        parts = [getattr(columns, column).values[indices] for columns, _, indices in inventories]
        return np.concatenate([nothing, *parts])

    free, used = joined("free"), joined("used")
    return InventoryAmounts(
        names,
        class_ids,
        forest.id.values[rows],
        groups,
        np.repeat(np.arange(len(inventories)), [len(at) for _, at, _ in inventories]),
        np.concatenate([nothing, *(at for _, at, _ in inventories)]),
        joined("total"),
        joined("reserved"),
        # What the columns cut off of a capacity is beyond all that is shown.
        np.maximum(free + used, 0),
        used,
        np.maximum(free, 0),
    )


def takes_long(forest: Forest, rows: Rows, classes: Iterable[str] | None, by: By | None) -> bool:
    """Tell whether copying amounts and groups takes longer than other requests may wait."""
    columns_of_classes = _classes(forest, rows, classes)
    inventories = sum(min(len(columns), len(rows)) for _, _, columns in columns_of_classes)
    groups = forest.aggregate_links.group_count if by is By.AGGREGATE else 0
    return (
        inventories > thresholds.INVENTORIES_COPIED
        or len(columns_of_classes) + groups // _GROUPS_FOR_A_CLASS > thresholds.CLASSES_COPIED
    )


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
    """Return the sums over those of some rows that are in each aggregate, or whose root is.

    Args:
        forest: All providers.
        rows: Those that pass, ascending.
        aggregates: UUIDs; those without a provider are left out.
        held: Held amounts.
    """
    uuids = frozenset(aggregates)
    groups = groups_of(forest, rows, By.AGGREGATE, after="", limit=len(uuids), among=uuids)
    sums = amounts_of(forest, rows, groups=groups).with_held(held).totals_by_group()
    return {str(group["uuid"]): group["totals"] for group in sums}
