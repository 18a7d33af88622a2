# SPDX-License-Identifier: Apache-2.0
"""Sums over inventories of all matching providers, or of pages of groups (contract page 99, section 3).

A group is a tree, an aggregate or a trait. One pass over memberships finds the members of all
groups: a pass over all rows for each aggregate took 700 ms with ten thousand hosts, each in an
aggregate of its own. Sums are bounded as in `table/columns.py`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.table.class_inventories import ClassInventories
from treeclaim.forest.table.columns import (
    Integers,
    Rows,
    cap_count,
    expand_ranges,
    find_ascending,
    require_ascending,
    search_ascending,
    sum_by_part,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldUnits, held_by_class
from treeclaim.model.parts import AGGREGATES, TRAITS


class GroupKind(StrEnum):
    """Kinds of groups."""

    TREE = "tree"
    AGGREGATE = "aggregate"
    TRAIT = "trait"


@dataclass(frozen=True, slots=True)
class GroupPage:
    """A page of groups that have a row.

    Attributes:
        labels: UUID, None for a trait, and name, None for an aggregate, of each group.
        group: The number of the group of each membership, ascending.
        at: The index of the row of each membership among the selected rows.
        next_after: Key of the last group of the page; None for the last page.
    """

    labels: Sequence[tuple[str | None, str | None]]
    group: Integers
    at: Integers
    next_after: str | None


def find_groups(
    forest: Forest,
    rows: Rows,
    by: GroupKind,
    *,
    after: str,
    limit: int,
    among: Collection[str] | None = None,
) -> GroupPage:
    """Return the first groups, in order of their keys, that contain some ascending rows.

    `after` excludes groups up to that key, unless it is empty; `among` includes only these aggregates.
    """
    rows = require_ascending(rows)
    if by is GroupKind.TREE:
        return _group_by_tree(forest, rows, int(after or 0), limit)
    if by is GroupKind.TRAIT:
        lists = forest.links[TRAITS.name].lists()
        traits = forest.catalogue.traits
        names = sorted(
            name for name, trait in traits.items() if name > after and trait.id in lists
        )
        group, members = _concatenate_lists([lists[traits[name].id] for name in names])
        group, at = _filter_members(rows, group, members)
        return _make_page(group, at, [(None, name) for name in names], names, limit)
    lists_by_uuid = forest.links[AGGREGATES.name].lists()
    uuids = sorted(
        uuid for uuid in lists_by_uuid if uuid > after and (among is None or uuid in among)
    )
    group, members = _concatenate_lists([lists_by_uuid[uuid] for uuid in uuids])
    group, at = _expand_root_members(forest, rows, group, members)
    return _make_page(group, at, [(uuid, None) for uuid in uuids], uuids, limit)


def _group_by_tree(forest: Forest, rows: Rows, after: int, limit: int) -> GroupPage:
    heads, tree = np.unique(forest.root.values[rows], return_inverse=True)
    ids = forest.id.values[heads]
    later = np.flatnonzero(ids > after)
    # One more group than the limit, to detect a next page.
    order = later[np.argsort(ids[later], kind="stable")][: limit + 1]
    number = np.full(len(heads), -1)
    number[order] = np.arange(len(order))
    group = number[tree]
    at = np.argsort(group, kind="stable")[np.count_nonzero(group < 0) :]
    uuids = [uuid.decode() for uuid in forest.uuid.values[heads[order]].tolist()]
    labels = list(zip(uuids, forest.names(heads[order].tolist()), strict=True))
    return _make_page(group[at], at, labels, list(map(str, ids[order].tolist())), limit)


def _expand_root_members(
    forest: Forest, rows: Rows, group: Integers, members: Rows
) -> tuple[Integers, Integers]:
    """Return the groups and indices of rows that are members, or have a member root, each pair once."""
    is_root = forest.root.values[members] == members
    own_group, own_at = _filter_members(rows, group[~is_root], members[~is_root])
    # The rows of a tree are contiguous.
    roots = members[is_root]
    first = search_ascending(rows, roots)
    counts = search_ascending(rows, forest.end.values[roots]) - first
    all_groups = np.concatenate([own_group, np.repeat(group[is_root], counts)])
    all_at = np.concatenate([own_at, expand_ranges(first, counts)])
    width = max(len(rows), 1)
    return np.divmod(np.unique(all_groups * width + all_at), width)


def _concatenate_lists(lists: Sequence[Rows]) -> tuple[Integers, Rows]:
    number = np.repeat(np.arange(len(lists)), [len(rows) for rows in lists])
    return number, np.concatenate([np.empty(0, dtype=np.int64), *lists])


def _filter_members(rows: Rows, group: Integers, members: Rows) -> tuple[Integers, Integers]:
    passes, at = find_ascending(rows, members)
    return group[passes], at[passes]


def _make_page(
    group: Integers,
    at: Integers,
    labels: Sequence[tuple[str | None, str | None]],
    keys: Sequence[str],
    limit: int,
) -> GroupPage:
    """Return the first groups with a row, numbered from 0, given memberships in all groups."""
    present, number = np.unique(group, return_inverse=True)
    page = present[:limit].tolist()
    end = int(search_ascending(number, len(page)))
    next_after = keys[page[-1]] if len(present) > limit else None
    return GroupPage([labels[each] for each in page], number[:end], at[:end], next_after)


Units = npt.NDArray[np.int64]
"""Amounts of a class, each at least 0."""

SUMS = ("total", "reserved", "capacity", "used", "free", "largest_free", "providers")
"""Sums of a class, in the order of the response. `held` follows."""

_SUMMED = ("total", "reserved", "capacity", "used", "free", "held")

Totals = dict[str, dict[str, int]]
"""Sums by name of the resource class, in order of the classes' ids."""

_INVENTORIES_TOGETHER = 100_000
"""Inventories that are summed at a time, as one may be in many groups."""


class InventoryAmounts:
    """The amounts of the inventories of some providers."""

    def __init__(
        self,
        forest: Forest,
        rows: Rows,
        held_units: HeldUnits,
        classes: Iterable[str] | None = None,
    ) -> None:
        """Read the inventories of ascending rows; `classes` names existing classes, None for all."""
        columns = _inventory_columns(forest, rows, held_units, classes)
        self._count = len(rows)
        self._names = [name for name, _, _ in columns]
        # The number of the class of each inventory, and the index of its provider among the rows.
        self._class: Integers = np.repeat(
            np.arange(len(columns)), [len(at) for _, at, _ in columns]
        )
        nothing = np.empty(0, dtype=np.int64)
        self._at: Integers = np.concatenate([nothing, *(at for _, at, _ in columns)])
        self._summed: dict[str, Units] = {
            name: np.concatenate([nothing, *(amounts[name] for _, _, amounts in columns)])
            for name in _SUMMED
        }

    def totals(self) -> Totals:
        """Return the sums over all providers."""
        sums = self._sums(self._class, slice(None))
        return {self._names[number]: of_class for number, of_class in sums}

    def sum_by_group(self, groups: GroupPage, budget: Budget = UNBOUNDED) -> list[dict[str, Any]]:
        """Return the UUID, the name and the sums of each group."""
        sums: list[Totals] = [{} for _ in groups.labels]
        by_provider = np.argsort(self._at, kind="stable")
        counts = np.bincount(self._at, minlength=self._count)
        starts = counts.cumsum() - counts
        ends = counts[groups.at].cumsum()
        begin = 0
        while begin < len(groups.group):
            budget.check()
            # Groups with about `_INVENTORIES_TOGETHER` inventories, at least one.
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
        """Yield each distinct key, ascending, with the sums of its inventories."""
        distinct_keys, key, counts = np.unique(keys, return_inverse=True, return_counts=True)
        largest = np.zeros(len(distinct_keys), dtype=np.int64)
        np.maximum.at(largest, key, self._summed["free"][which])
        sums = {
            name: sum_by_part(key, units[which], len(counts)).tolist()
            for name, units in self._summed.items()
        }
        sums |= {
            "largest_free": list(map(cap_count, largest.tolist())),
            "providers": counts.tolist(),
        }
        names = (*SUMS, "held")
        columns = zip(*(sums[name] for name in names), strict=True)
        for distinct_key, values in zip(distinct_keys.tolist(), columns, strict=True):
            yield distinct_key, dict(zip(names, values, strict=True))


def _inventory_columns(
    forest: Forest, rows: Rows, held_units: HeldUnits, classes: Iterable[str] | None
) -> list[tuple[str, Rows, dict[str, Units]]]:
    """Return the name of each class, the indices of the rows that have an inventory, and the amounts."""
    inventories = []
    held_amounts = held_by_class(forest, held_units)
    for name, class_id, columns in _classes(forest, rows, classes):
        at, indices = columns.locate(rows)
        if len(at):
            held_by_row = np.zeros(forest.row_count, dtype=np.int64)
            if class_id in held_amounts:
                held_rows, units = held_amounts[class_id]
                held_by_row[held_rows] = units
            free_units, used_units = columns.free.values[indices], columns.used.values[indices]
            amounts = {
                "total": columns.total.values[indices],
                "reserved": columns.reserved.values[indices],
                # The columns clip capacities only far above `GREATEST`, the most that is shown.
                "capacity": np.maximum(free_units + used_units, 0),
                "used": used_units,
                "free": np.maximum(free_units, 0),
                "held": held_by_row[rows[at]],
            }
            inventories.append((name, at, amounts))
    return inventories


def _classes(
    forest: Forest, rows: Rows, classes: Iterable[str] | None
) -> list[tuple[str, int, ClassInventories]]:
    entry_by_id = forest.catalogue.class_by_id
    if classes is not None:
        entries = [forest.catalogue.resource_classes[name] for name in classes]
        class_ids = {entry.id for entry in entries} & forest.classes.keys()
    elif len(rows) < len(forest.classes):
        class_ids = forest.classes_of(rows)
    else:
        class_ids = set(forest.classes)
    # Columns of deleted classes remain, without living rows.
    return [
        (entry_by_id[number].name, number, forest.classes[number])
        for number in sorted(class_ids & entry_by_id.keys())
    ]


def sum_by_aggregate(
    forest: Forest, rows: Rows, aggregates: Sequence[str], held_units: HeldUnits
) -> dict[str, Totals]:
    """Return the sums of each aggregate over the ascending rows that are in it, or whose root is.

    Aggregates without rows are left out.
    """
    uuids = frozenset(aggregates)
    groups = find_groups(
        forest, rows, GroupKind.AGGREGATE, after="", limit=len(uuids), among=uuids
    )
    sums = InventoryAmounts(forest, rows, held_units).sum_by_group(groups)
    return {str(group["uuid"]): group["totals"] for group in sums}
