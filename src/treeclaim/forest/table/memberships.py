# SPDX-License-Identifier: Apache-2.0
"""What each row has of a part of providers, such as its traits, and which rows have it."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from treeclaim.forest.table.columns import Column, Mask, Rows
from treeclaim.forest.table.layout import Layout, grouped
from treeclaim.model.whole import Links

_NO_ROW = -1
_Group = TypeVar("_Group", bound=Hashable)


class Memberships(Generic[_Group]):
    """The groups of each row, and ascending lists of rows by group.

    Rows of providers that are gone stay in them.
    """

    def __init__(self) -> None:
        self._rows: dict[_Group, Column] = {}
        self._groups: list[tuple[_Group, ...]] = []
        self._shared: dict[tuple[_Group, ...], tuple[_Group, ...]] = {}

    def __iter__(self) -> Iterator[_Group]:
        """Iterate over the groups that some row is or was in."""
        return iter(self._rows)

    def append(self, groups_of_rows: Iterable[tuple[_Group, ...]]) -> None:
        """Note the groups of the next rows, ascending."""
        found: dict[_Group, list[int]] = defaultdict(list)
        for row, groups in enumerate(groups_of_rows, len(self._groups)):
            # Many providers have the same traits, or aggregates: one tuple serves them all.
            self._groups.append(self._shared.setdefault(groups, groups))
            for group in groups:
                found[group].append(row)
        for group, rows in found.items():
            self._rows.setdefault(group, Column(np.int64)).extend(rows)

    def begin_with(self, links: Links, layout: Layout) -> None:
        """Note the groups of all rows, before any other; links to providers without a row are none.

        Groups are numbered in their order, so that tuples of numbers are as sorted as those of groups.
        """
        rows = layout.rows_of(links.provider_id)
        has_row = rows != _NO_ROW
        rows = rows[has_row]
        numbers, at = np.unique(links.other[has_row], return_inverse=True)
        names: list[Any] = numbers.tolist()
        if links.names is not None:
            names = [links.names[number] for number in names]
        in_order = sorted(range(len(names)), key=names.__getitem__)
        rank = np.empty(len(names), dtype=np.int64)
        rank[in_order] = np.arange(len(names))
        groups: list[_Group] = [names[number] for number in in_order]
        self._note(groups, rank[at], rows)
        ranks = grouped(rows, rank[at], len(layout.provider))
        # Equal tuples are one object.
        distinct = {id(some): some for some in ranks}
        named = {which: tuple(groups[at] for at in some) for which, some in distinct.items()}
        self._groups = [named[id(some)] for some in ranks]

    def _note(self, groups: Sequence[_Group], number: Rows, rows: Rows) -> None:
        """Note pairs of a group, by its number among all, and a row."""
        order = np.lexsort((rows, number))
        rows = rows[order]
        cuts = number[order].searchsorted(np.arange(len(groups) + 1))
        for at, group in enumerate(groups):
            first, end = int(cuts[at]), int(cuts[at + 1])
            if first < end:
                self._rows.setdefault(group, Column(np.int64)).extend(rows[first:end])

    def of(self, row: int) -> tuple[_Group, ...]:
        """Return the groups of a row, ascending."""
        return self._groups[row]

    def rows(self, group: _Group, alive: Mask) -> Rows:
        """Return the rows that are in a group, ascending, given which rows are alive."""
        column = self._rows.get(group)
        if column is None:
            return np.empty(0, dtype=np.int64)
        rows: Rows = column.values
        living: Rows = rows[alive[rows]]
        return living

    def lists(self) -> dict[_Group, Rows]:
        """Return the rows of all groups, ascending, dead ones too: views, which stay as they are."""
        return {group: column.values for group, column in self._rows.items()}

    def mask(self, groups: Iterable[_Group]) -> Mask:
        """Tell for every row whether it is in any of some groups; dead rows may be told wrongly.

        One copy of all lists together: a question may name a thousand groups.
        """
        mask = np.zeros(len(self._groups), dtype=np.bool_)
        lists = [self._rows[group].values for group in groups if group in self._rows]
        if lists:
            mask[np.concatenate(lists)] = True
        return mask
