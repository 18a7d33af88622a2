# SPDX-License-Identifier: Apache-2.0
"""Puts the providers of whole trees into rows, by operations on whole arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.table.columns import NO_ROW, Integers, Rows, expand_ranges, search_ascending
from treeclaim.model.whole import Numbers


@dataclass(frozen=True, slots=True)
class Layout:
    """Assigns rows to providers.

    Attributes:
        ids: Ids of what was laid out, ascending.
        provider: By row: where the provider is in what was laid out.
        row: By where a provider is in what was laid out: its row, or -1 if it gets none.
        parent: By row: the row of the parent, -1 for a root.
        root: By row: the row of the tree's root.
        end: By row: the first row behind the subtree.
    """

    ids: Numbers
    provider: Integers
    row: Rows
    parent: Rows
    root: Rows
    end: Rows

    def rows_of(self, ids: Numbers) -> Rows:
        """Return the rows of providers by their ids, -1 for those that have none."""
        at = _indices(self.ids, ids)
        rows: Rows = np.append(self.row, NO_ROW)[at]
        return rows


def lay_out(ids: Numbers, parent_ids: Numbers) -> Layout:
    """Lay out whole trees: those in order of their root's id, each in pre-order, children by id.

    A provider whose parent is not there is the root of its own tree. One above which there is no
    root at all (a database may be older than the rules) gets no row.

    Args:
        ids: Ids of all providers, ascending.
        parent_ids: Ids of their parents; anything that is not an id for none.
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
            above = parent[level]
            # Children of the same parent are next to each other, by id.
            is_first = np.append(True, above[1:] != above[:-1])
            start = before[np.maximum.accumulate(np.where(is_first, np.arange(len(level)), 0))]
            row[level] = row[above] + 1 + before - start
            root[level] = root[above]
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
    """Return where ids are among some ascending ones, -1 for those that are not there."""
    at = search_ascending(ids, sought_ids)
    at[at == len(ids)] = 0
    is_there = ids[at] == sought_ids if len(ids) else np.zeros(0, dtype=np.bool_)
    indices: Integers = np.where(is_there, at, NO_ROW)
    return indices


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
    """Return the values of each of some rows, ascending; equal tuples are one object."""
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    counts = np.bincount(rows, minlength=count)
    starts = counts.cumsum() - counts
    distinct_tuples: list[tuple[int, ...]] = [()]
    code = np.zeros(count, dtype=np.int64)
    longer = np.arange(count)
    for nth in range(int(counts.max(initial=0))):
        # A single one may have thousands, and is all that is looked at then.
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
