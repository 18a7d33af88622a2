# SPDX-License-Identifier: Apache-2.0
"""Which rows have a trait, or are in an aggregate."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from treeclaim.forest.table.columns import Column, Mask, Rows

_Group = TypeVar("_Group", bound=Hashable)


class Memberships(Generic[_Group]):
    """Ascending lists of rows by group; rows of providers that are gone stay in them."""

    def __init__(self) -> None:
        self._rows: dict[_Group, Column] = {}

    def __iter__(self) -> Iterator[_Group]:
        """Iterate over the groups that some row is or was in."""
        return iter(self._rows)

    def append(self, first: int, groups_of_rows: Iterable[Iterable[_Group]]) -> None:
        """Note the groups of some rows, from row `first` on, which is beyond all rows there are."""
        found: dict[_Group, list[int]] = defaultdict(list)
        for row, groups in enumerate(groups_of_rows, first):
            for group in groups:
                found[group].append(row)
        for group, rows in found.items():
            self._rows.setdefault(group, Column(np.int64)).extend(rows)

    def begin_with(self, groups: Sequence[_Group], number: Rows, rows: Rows) -> None:
        """Note pairs of a group, by its number among some groups, and a row; before any other."""
        order = np.lexsort((rows, number))
        rows = rows[order]
        cuts = number[order].searchsorted(np.arange(len(groups) + 1))
        for at, group in enumerate(groups):
            first, end = int(cuts[at]), int(cuts[at + 1])
            if first < end:
                self._rows.setdefault(group, Column(np.int64)).extend(rows[first:end])

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

    def mask(self, groups: Iterable[_Group], row_count: int) -> Mask:
        """Tell for every row whether it is in any of some groups; dead rows may be told wrongly.

        One copy of all lists together: a question may name a thousand groups.
        """
        mask = np.zeros(row_count, dtype=np.bool_)
        lists = [self._rows[group].values for group in groups if group in self._rows]
        if lists:
            mask[np.concatenate(lists)] = True
        return mask
