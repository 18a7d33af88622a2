# SPDX-License-Identifier: Apache-2.0
"""Assigns rows to the providers of whole trees by array operations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.table.columns import (
    NO_ROW,
    Integers,
    Rows,
    expand_ranges,
    find_ascending,
    search_ascending,
)
from treeclaim.model.whole import Numbers


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows of providers.

    Attributes:
        ids: Ids of the providers, ascending.
        provider: Index into `ids` by row.
        row: Row by index into `ids`, -1 for providers without a row.
        parent: Row of the parent by row, -1 for a root.
        root: Row of the tree's root by row.
        end: One past the last row of the subtree, by row.
    """

    ids: Numbers
    provider: Integers
    row: Rows
    parent: Rows
    root: Rows
    end: Rows

    def rows_of(self, ids: Numbers) -> Rows:
        """Return the rows of providers by their ids, -1 for providers without a row."""
        at = _indices(self.ids, ids)
        rows: Rows = np.append(self.row, NO_ROW)[at]
        return rows


def lay_out(ids: Numbers, parent_ids: Numbers) -> Layout:
    """Lay out whole trees in order of the root's id, each in pre-order, with children by id.

    A provider with a missing parent is the root of its tree. A provider with a cycle of parents gets
    no row; older databases may contain cycles.

    Args:
        ids: Ids of all providers, ascending.
        parent_ids: Ids of their parents; unknown ids for roots.
    """
    parent = _indices(ids, parent_ids)
    levels = _levels(parent)
    size = np.zeros(len(ids), dtype=np.int64)
    for level in reversed(levels):
        size[level] += 1
        if level is not levels[0]:
            np.add.at(size, parent[level], size[level])
    row = np.full(len(ids), NO_ROW, dtype=np.int64)
    root = np.empty(len(ids), dtype=np.int64)
    for level in levels:
        before = size[level].cumsum() - size[level]
        if level is levels[0]:
            row[level] = before
            root[level] = before
        else:
            parents = parent[level]
            # Children of the same parent are next to each other, by id.
            is_first = np.append(True, parents[1:] != parents[:-1])
            start = before[np.maximum.accumulate(np.where(is_first, np.arange(len(level)), 0))]
            row[level] = row[parents] + 1 + before - start
            root[level] = root[parents]
    has_row = row != NO_ROW
    provider = np.flatnonzero(has_row)
    provider = provider[np.argsort(row[provider])]
    has_parent = parent[provider] != NO_ROW
    return Layout(
        ids=ids,
        provider=provider,
        row=row,
        parent=np.where(has_parent, row[parent[provider]], NO_ROW),
        root=root[provider],
        end=np.arange(len(provider)) + size[provider],
    )


def _indices(ids: Numbers, sought_ids: Numbers) -> Integers:
    """Return the indices of the sought ids, -1 for ids that are missing."""
    is_found, at = find_ascending(ids, sought_ids)
    return np.where(is_found, at, NO_ROW)


def _levels(parent: Integers) -> Sequence[Integers]:
    """Return the roots, then their children, and so on; each level by parent, then by id."""
    by_parent = np.argsort(parent, kind="stable")
    parents = parent[by_parent]
    levels: list[Integers] = []
    level: Integers = np.flatnonzero(parent == NO_ROW)
    while len(level):
        levels.append(level)
        first = search_ascending(parents, level, side="left")
        counts = search_ascending(parents, level, side="right") - first
        level = by_parent[expand_ranges(first, counts)]
    return levels


def group_values(rows: Rows, values: Numbers, count: int) -> list[tuple[int, ...]]:
    """Return the values of each row, ascending; equal tuples are the same object."""
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    counts = np.bincount(rows, minlength=count)
    starts = counts.cumsum() - counts
    distinct_tuples: list[tuple[int, ...]] = [()]
    code = np.zeros(count, dtype=np.int64)
    longer = np.arange(count)
    for nth in range(int(counts.max(initial=0))):
        # One row may have thousands of values; each turn handles only the rows with more.
        longer = longer[counts[longer] > nth]
        added = values[starts[longer] + nth]
        kinds, kind = np.unique(added, return_inverse=True)
        pairs, number = np.unique(code[longer] * len(kinds) + kind, return_inverse=True)
        before, last = divmod(pairs, len(kinds))
        first = len(distinct_tuples)
        distinct_tuples += [
            (*distinct_tuples[shorter], value)
            for shorter, value in zip(before.tolist(), kinds[last].tolist(), strict=True)
        ]
        code[longer] = first + number
    return [distinct_tuples[number] for number in code.tolist()]
