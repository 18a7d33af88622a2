# SPDX-License-Identifier: Apache-2.0
"""Lists of providers (contract page 20, section 2)."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains import filters
from treeclaim.forest.table.columns import NO_ROW, Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import ProviderQuery

_NOBODY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ProviderList:
    """Some providers, copied out of the Forest in the quickest way, to be written piece by piece.

    Attributes:
        name: Names.
        uuid, parent, root: Uuids, `S36`; what stands for the parent of a root means nothing.
        is_root: Which have no parent.
        generation: Generations.
        modified_at: Seconds since the epoch.
    """

    name: list[str]
    uuid: npt.NDArray[np.bytes_]
    parent: npt.NDArray[np.bytes_]
    root: npt.NDArray[np.bytes_]
    is_root: Mask
    generation: npt.NDArray[np.int64]
    modified_at: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Return the number of providers."""
        return len(self.name)

    @property
    def newest(self) -> float | None:
        """Return when one of them changed last; None if there are none."""
        return float(self.modified_at.max()) if len(self) else None

    def part(self, first: int, end: int) -> "ProviderList":
        """Return some of them."""
        some = slice(first, end)
        return ProviderList(
            name=self.name[some],
            uuid=self.uuid[some],
            parent=self.parent[some],
            root=self.root[some],
            is_root=self.is_root[some],
            generation=self.generation[some],
            modified_at=self.modified_at[some],
        )


def provider_list(forest: Forest, rows: Rows) -> ProviderList:
    """Copy some rows out of the Forest."""
    parents = forest.parent.values[rows]
    return ProviderList(
        name=forest.names(rows),
        uuid=forest.uuid.values[rows],
        # The last row stands in for a parent that is not there.
        parent=forest.uuid.values[parents],
        root=forest.uuid.values[forest.root.values[rows]],
        is_root=parents == NO_ROW,
        generation=forest.generation.values[rows],
        modified_at=forest.modified_at.values[rows],
    )


def matching_providers(forest: Forest, query: ProviderQuery) -> Rows:
    """Return the rows of all providers that match, in canonical order.

    Only what a provider itself has counts: neither its tree nor sharing providers.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: for unknown names, unless an earlier
            filter left nothing (section 2.6).
    """
    conditions = query.conditions
    named = _named(forest, query)
    if named is not None and conditions.is_empty and not query.resources:
        return named
    rows = filters.in_named_trees(forest, conditions)
    if conditions.in_tree and not len(rows):
        return _NOBODY
    filters.require_known_traits(forest, frozenset[str]().union(*conditions.required))
    if conditions.required:
        rows = filters.by_traits(forest, replace(conditions, forbidden=frozenset()), rows)
        if not len(rows):
            return _NOBODY
    filters.require_known_traits(forest, conditions.forbidden)
    rows = filters.without_forbidden_traits(forest, conditions, rows)
    rows = filters.members(forest, conditions, rows)
    if conditions.member_of and not len(rows):
        return _NOBODY
    rows = filters.not_outcast(forest, conditions, rows)
    filters.require_known_classes(forest, query.resources)
    for name, amount in query.resources.items():
        columns = forest.class_inventories(name)
        at, indices = columns.among(rows)
        rows = rows[at][columns.fits(indices, amount)]
    if named is not None:
        rows = rows[np.isin(rows, named)]
    if len(rows) > 1 and not forest.order.is_row_order:
        order = forest.order
        rows = order.row[np.sort(order.position[rows])]
    return rows


def _named(forest: Forest, query: ProviderQuery) -> Rows | None:
    """Return the row that has the requested name and uuid, if there is one; None if any may."""
    wanted = []
    if query.name is not None:
        wanted.append({forest.row_of_name(query.name)})
    if query.uuid is not None:
        wanted.append({forest.row_of(query.uuid)})
    if not wanted:
        return None
    return np.array([row for row in set.intersection(*wanted) if row is not None], dtype=np.int64)
