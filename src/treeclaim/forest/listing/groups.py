# SPDX-License-Identifier: Apache-2.0
"""Pages of groups of providers: trees, aggregates or traits (contract page 99, section 3).

The members of all groups are found by one pass over memberships: a pass over all rows for each aggregate took
700 ms where each of ten thousand hosts has one of its own.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from treeclaim.forest.table.columns import (
    Integers,
    Rows,
    ascending,
    expand_ranges,
    search_ascending,
)
from treeclaim.forest.table.forest import Forest


class By(StrEnum):
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
        at: The index of the row of each membership among the rows that pass.
        next_after: Key behind which the next page begins; None if this is the last one.
    """

    labels: Sequence[tuple[str | None, str | None]]
    group: Integers
    at: Integers
    next_after: str | None


def groups_of(
    forest: Forest,
    rows: Rows,
    by: By,
    *,
    after: str,
    limit: int,
    among: Collection[str] | None = None,
) -> GroupPage:
    """Return the first groups that contain some rows, with those rows.

    Args:
        forest: All providers.
        rows: The rows that pass the filters, ascending.
        by: The kind of the groups.
        after: Return only groups with keys greater than this; empty for all.
        limit: The most groups to return.
        among: Only these aggregates; None for all.
    """
    rows = ascending(rows)
    if by is By.TREE:
        return _trees(forest, rows, int(after or 0), limit)
    if by is By.TRAIT:
        lists = forest.trait_links.lists()
        traits = forest.catalogue.traits
        names = sorted(
            name for name, trait in traits.items() if name > after and trait.id in lists
        )
        group, members = _flat([lists[traits[name].id] for name in names])
        group, at = _passing(rows, group, members)
        return _page(group, at, [(None, name) for name in names], names, limit)
    lists_by_uuid = forest.aggregate_links.lists()
    uuids = sorted(
        uuid for uuid in lists_by_uuid if uuid > after and (among is None or uuid in among)
    )
    group, members = _flat([lists_by_uuid[uuid] for uuid in uuids])
    group, at = _with_trees_of_roots(forest, rows, group, members)
    return _page(group, at, [(uuid, None) for uuid in uuids], uuids, limit)


def _trees(forest: Forest, rows: Rows, after: int, limit: int) -> GroupPage:
    heads, tree = np.unique(forest.root.values[rows], return_inverse=True)
    ids = forest.id.values[heads]
    later = np.flatnonzero(ids > after)
    # One group more than the page shows that there is a next page.
    order = later[np.argsort(ids[later], kind="stable")][: limit + 1]
    number = np.full(len(heads), -1)
    number[order] = np.arange(len(order))
    group = number[tree]
    at = np.argsort(group, kind="stable")[np.count_nonzero(group < 0) :]
    uuids = [uuid.decode() for uuid in forest.uuid.values[heads[order]].tolist()]
    labels = list(zip(uuids, forest.names(heads[order].tolist()), strict=True))
    return _page(group[at], at, labels, list(map(str, ids[order].tolist())), limit)


def _with_trees_of_roots(
    forest: Forest, rows: Rows, group: Integers, members: Rows
) -> tuple[Integers, Integers]:
    """Return the groups and indices of rows that are members, or whose root is, each pair once."""
    is_root = forest.root.values[members] == members
    own_group, own_at = _passing(rows, group[~is_root], members[~is_root])
    # A tree is an interval of rows.
    roots = members[is_root]
    first = search_ascending(rows, roots)
    counts = search_ascending(rows, forest.end.values[roots]) - first
    all_groups = np.concatenate([own_group, np.repeat(group[is_root], counts)])
    all_at = np.concatenate([own_at, expand_ranges(first, counts)])
    width = max(len(rows), 1)
    return np.divmod(np.unique(all_groups * width + all_at), width)


def _flat(lists: Sequence[Rows]) -> tuple[Integers, Rows]:
    """Return all rows of some lists, each with the number of its list."""
    number = np.repeat(np.arange(len(lists)), [len(rows) for rows in lists])
    return number, np.concatenate([np.empty(0, dtype=np.int64), *lists])


def _passing(rows: Rows, group: Integers, members: Rows) -> tuple[Integers, Integers]:
    """Return the groups and indices of the members that are among some ascending rows."""
    at = search_ascending(rows, members)
    passes = at < len(rows)
    passes[passes] = rows[at[passes]] == members[passes]
    return group[passes], at[passes]


def _page(
    group: Integers,
    at: Integers,
    labels: Sequence[tuple[str | None, str | None]],
    keys: Sequence[str],
    limit: int,
) -> GroupPage:
    """Return the first groups that have a row, numbered from 0, given all of them in order."""
    present, number = np.unique(group, return_inverse=True)
    shown = present[:limit].tolist()
    end = int(search_ascending(number, len(shown)))
    next_after = keys[shown[-1]] if len(present) > limit else None
    return GroupPage([labels[each] for each in shown], number[:end], at[:end], next_after)
