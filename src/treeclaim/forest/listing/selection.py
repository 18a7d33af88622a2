# SPDX-License-Identifier: Apache-2.0
"""Which providers a page shows: those that pass all filters, in order of creation.

The order is that of ids, which providers keep wherever they are moved. So a client that reads page after
page, each behind the last id of the one before, sees what exists throughout exactly once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from treeclaim.forest.domains import filters
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import ProviderConditions


@dataclass(frozen=True, slots=True)
class ProviderSelection:
    """A question for providers (contract page 99, section 1); all filters combine.

    Attributes:
        name: Exact name; None for any.
        uuids: Exact uuids, of which one is wanted; None for any.
        conditions: Traits, aggregates and trees; only the provider's own count.
        resources: Amounts that the provider alone must be able to give.
    """

    name: str | None = None
    uuids: frozenset[str] | None = None
    conditions: ProviderConditions = field(default_factory=ProviderConditions)
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a longer list.

    Attributes:
        rows: In order of creation, int64.
        next_after: Id behind which the next page begins; None if this is the last one.
    """

    rows: Rows
    next_after: int | None


def page_of(forest: Forest, rows: Rows, after: int, limit: int) -> Page:
    """Take the first rows in order of creation behind an id (0 for the very first)."""
    if len(rows) == len(forest):
        rows = forest.rows_created_behind(after, limit + 1)
    ids = forest.id.values[rows]
    behind = np.flatnonzero(ids > after)
    order = behind[np.argsort(ids[behind], kind="stable")]
    shown = rows[order[:limit]]
    if len(order) <= limit:
        return Page(shown, None)
    return Page(shown, int(forest.id.values[shown[-1]]))


def selected(forest: Forest, selection: ProviderSelection) -> Rows:
    """Return the rows of all providers that pass, ascending.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: for unknown names, whatever else is asked.
    """
    rows = meeting(forest, selection.conditions, _named(forest, selection))
    filters.require_known_classes(forest, selection.resources)
    for name, amount in selection.resources.items():
        columns = forest.class_inventories(name)
        at, indices = columns.among(rows)
        rows = rows[at][columns.fits(indices, amount)]
    return rows


def meeting(forest: Forest, conditions: ProviderConditions, among: Rows | None = None) -> Rows:
    """Return the rows of the providers that meet some conditions themselves, ascending.

    Args:
        forest: All providers.
        conditions: Traits, aggregates and trees.
        among: Rows that are looked at, ascending; None for all.

    Raises:
        TraitsNotFoundError: for unknown traits.
    """
    names = conditions.forbidden.union(*conditions.required)
    filters.require_known_traits(forest, sorted(names))
    rows = filters.in_named_trees(forest, conditions) if among is None else among
    return filters.meeting(forest, conditions, rows)


def _named(forest: Forest, selection: ProviderSelection) -> Rows | None:
    """Return the rows that have the name and one of the uuids, ascending; None for any."""
    wanted: list[set[int | None]] = []
    if selection.name is not None:
        wanted.append({forest.row_of_name(selection.name)})
    if selection.uuids is not None:
        wanted.append({forest.row_of(uuid) for uuid in selection.uuids})
    if not wanted:
        return None
    rows = [row for row in set.intersection(*wanted) if row is not None]
    return np.array(sorted(rows), dtype=np.int64)
