# SPDX-License-Identifier: Apache-2.0
"""Classes, traits and other links of each provider by handle, and the rows of each link.

Names and links are Python objects, stored by **handle**. Copies of rows therefore copy none of
these objects, and replacing a table does not release a million of them at once.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Column, Mask, Rows, merge_rows
from treeclaim.forest.table.consumption import Patterns
from treeclaim.forest.table.layout import Layout, group_values
from treeclaim.model.parts import ATTRIBUTES, INVENTORIES, SHOWN_LINKS
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.whole import Links

_MOST_SHARED = 4096
"""Distinct tuples that are kept for sharing; most clouds have some dozen."""


_Group = TypeVar("_Group", bound=Hashable)


class Holdings:
    """Links of providers by handle; entries of unused handles are meaningless.

    Attributes:
        names: Names of providers.
        lists: Ascending entries of every part by the part's name: class ids of inventories, names of
            attributes, links of all other parts.
        patterns: Consumption of their inventories.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        names = INVENTORIES.name, ATTRIBUTES.name, *(part.name for part in SHOWN_LINKS)
        self.lists: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
        self.patterns = Patterns()
        self._shared: dict[tuple[Any, ...], Any] = {}

    def write(self, records: Sequence[ProviderRecord], handles: Sequence[int]) -> None:
        """Store the links of records."""
        missing = max(handles, default=-1) + 1 - len(self.names)
        if missing > 0:
            self.names.extend([""] * missing)
            for entries_by_handle in self.lists.values():
                entries_by_handle.extend([()] * missing)
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        # Many providers have equal traits and aggregates, which share one tuple.
        shared = self._shared.setdefault
        for record, handle in zip(records, handles, strict=True):
            self.names[handle] = record.name
            entries_by_part = {
                INVENTORIES.name: tuple([stock.class_id for stock in record.inventories]),
                ATTRIBUTES.name: tuple(sorted(record.attributes)),
                **record.links,
            }
            for name, entries_by_handle in self.lists.items():
                entries = entries_by_part.get(name, ())
                entries_by_handle[handle] = shared(entries, entries)


def rows_by_group(first: int, groups_of_rows: Sequence[tuple[_Group, ...]]) -> dict[_Group, Rows]:
    """Return the ascending rows of each group, given the groups of each row from `first` on.

    Rows with the same tuple object are handled together; most rows share a few tuples.
    """
    objects = np.fromiter(map(id, groups_of_rows), dtype=np.uint64, count=len(groups_of_rows))
    order = objects.argsort(kind="stable")
    objects = objects[order]
    cuts = (objects[1:] != objects[:-1]).nonzero()[0] + 1
    parts_by_group: dict[_Group, list[Rows]] = defaultdict(list)
    for rows in np.split(order, cuts) if len(cuts) else [order]:
        for group in groups_of_rows[rows[0]] if len(rows) else ():
            parts_by_group[group].append(rows)
    return {
        group: (parts[0] if len(parts) == 1 else merge_rows(parts)) + first
        for group, parts in parts_by_group.items()
    }


class Memberships(Generic[_Group]):
    """Ascending lists of rows by group, dead rows included."""

    def __init__(self) -> None:
        self._rows: dict[_Group, Column] = {}
        self._row_count = 0

    def __iter__(self) -> Iterator[_Group]:
        """Iterate over the groups that any row is or was in."""
        return iter(self._rows)

    @property
    def is_empty(self) -> bool:
        """Return whether no row was ever in a group."""
        return not self._rows

    def append(self, first: int, groups_of_rows: Sequence[tuple[_Group, ...]]) -> None:
        """Append the groups of new rows from `first` on."""
        self._row_count = first + len(groups_of_rows)
        for group, rows in rows_by_group(first, groups_of_rows).items():
            if group not in self._rows:
                self._rows[group] = Column(np.int64)
            self._rows[group].extend(rows)

    def load(self, links: Links, layout: Layout) -> list[tuple[_Group, ...]]:
        """Load the groups of all rows into empty lists; return them, ascending for each row.

        Links of providers without a row are skipped. Groups are numbered in their order, so that tuples of
        numbers sort as those of groups.
        """
        rows = layout.rows_of(links.provider_id)
        has_row = rows != NO_ROW
        numbers, at = np.unique(links.entry[has_row], return_inverse=True)
        names: list[Any] = numbers.tolist()
        if links.names is not None:
            names = [links.names[number] for number in names]
        in_order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), dtype=np.int64)
        rank[in_order] = np.arange(len(names))
        ranks = group_values(rows[has_row], rank[at], len(layout.provider))
        # Equal tuples of ranks are the same object, so `id` identifies them.
        groups_by_tuple = {
            id(ranks_of_row): tuple(names[in_order[number]] for number in ranks_of_row)
            for ranks_of_row in {id(each): each for each in ranks}.values()
        }
        groups = [groups_by_tuple[id(ranks_of_row)] for ranks_of_row in ranks]
        self.append(0, groups)
        return groups

    def rows(self, group: _Group, alive: Mask) -> Rows:
        """Return the living rows in a group, ascending."""
        column = self._rows.get(group)
        if column is None:
            return np.empty(0, dtype=np.int64)
        rows: Rows = column.values
        living: Rows = rows[alive[rows]]
        return living

    def lists(self) -> dict[_Group, Rows]:
        """Return views of the rows of all groups, ascending, dead rows included."""
        return {group: column.values for group, column in self._rows.items()}

    def mask(self, groups: Iterable[_Group]) -> Mask:
        """Return which rows are in any of these groups; arbitrary for dead rows.

        One copy of all lists together: a request may name a thousand groups.
        """
        mask = np.zeros(self._row_count, dtype=np.bool_)
        lists = [self._rows[group].values for group in groups if group in self._rows]
        if lists:
            mask[np.concatenate(lists)] = True
        return mask
