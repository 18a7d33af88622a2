# SPDX-License-Identifier: Apache-2.0
"""The providers of a list or a page: those that pass all filters.

Lists (contract page 20, section 2) are in canonical order. Pages (page 99, section 1) are in order of
creation, that is, of ids, which providers keep when they are moved. A client that reads each page
after the last id of the previous one therefore receives each lasting provider exactly once.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains import filters
from treeclaim.forest.table.columns import NO_ROW, Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import ProviderConditions, ProviderQuery

_NO_ROWS = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a longer list.

    Attributes:
        rows: In order of creation, int64.
        next_after: Last id of the page; None for the last page.
    """

    rows: Rows
    next_after: int | None


def select_page(forest: Forest, rows: Rows, after: int, limit: int) -> Page:
    """Return the first `limit` of the rows with ids above `after`, in order of creation."""
    if len(rows) == len(forest):
        rows = forest.rows_created_after(after, limit + 1)
    ids = forest.id.values[rows]
    behind = np.flatnonzero(ids > after)
    order = behind[np.argsort(ids[behind], kind="stable")]
    shown_rows = rows[order[:limit]]
    if len(order) <= limit:
        return Page(shown_rows, None)
    return Page(shown_rows, int(forest.id.values[shown_rows[-1]]))


def select_rows(forest: Forest, query: ProviderQuery) -> Rows:
    """Return the rows of all providers that pass the filters, ascending.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: for unknown names, even if no provider remains.
    """
    rows = select_by_conditions(
        forest, query.conditions, _find_named_rows(forest, query.name, query.uuids)
    )
    return _filter_by_room(forest, query.resources, rows)


def select_by_conditions(
    forest: Forest, conditions: ProviderConditions, among: Rows | None = None
) -> Rows:
    """Return those of the given ascending rows, or of all, that meet some conditions themselves, ascending.

    Raises:
        TraitsNotFoundError: for unknown traits.
    """
    names = conditions.forbidden.union(*conditions.required)
    filters.require_known_traits(forest, sorted(names))
    rows = filters.find_rows_in_trees(forest, conditions) if among is None else among
    return filters.filter_by_conditions(forest, conditions, rows)


def _filter_by_room(forest: Forest, resources: Mapping[str, int], rows: Rows) -> Rows:
    """Return the rows whose provider alone has these amounts free.

    Raises:
        ResourceClassNotFoundError: for unknown names.
    """
    filters.require_known_classes(forest, resources)
    for name, amount in resources.items():
        columns = forest.class_inventories(name)
        at, indices = columns.locate(rows)
        rows = rows[at][columns.fits(indices, amount)]
    return rows


@dataclass(frozen=True, slots=True)
class ProviderList:
    """Values of providers, copied from the Forest at once and serialized piece by piece.

    UUIDs are `S36`; the parent of a root is meaningless. `modified_at` is in seconds since the epoch.
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
        """Return the latest change of any provider; None without providers."""
        return float(self.modified_at.max()) if len(self) else None

    def entries(
        self, first: int = 0, end: int | None = None
    ) -> Iterator[tuple[bytes, str, int, bytes, bytes, bool]]:
        """Yield UUID, name, generation, parent, root and `is_root` of a range of providers."""
        arrays = (self.generation, self.parent, self.root, self.is_root)
        columns = [array[first:end].tolist() for array in arrays]
        return zip(self.uuid[first:end].tolist(), self.name[first:end], *columns, strict=True)


def copy_providers(forest: Forest, rows: Rows) -> ProviderList:
    """Copy rows out of the Forest."""
    parents = forest.parent.values[rows]
    return ProviderList(
        name=forest.names(rows),
        uuid=forest.uuid.values[rows],
        # NO_ROW, the missing parent of a root, reads the last row.
        parent=forest.uuid.values[parents],
        root=forest.uuid.values[forest.root.values[rows]],
        is_root=parents == NO_ROW,
        generation=forest.generation.values[rows],
        modified_at=forest.modified_at.values[rows],
    )


def matching_providers(forest: Forest, query: ProviderQuery) -> Rows:
    """Return the rows of all providers that match, in canonical order.

    Filters compare the provider alone, neither its tree nor sharing providers.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: for unknown names, unless an earlier
            filter left nothing (section 2.6).
    """
    conditions = query.conditions
    named_rows = _find_named_rows(forest, query.name, query.uuids)
    if named_rows is not None and conditions.is_empty and not query.resources:
        return named_rows
    rows = filters.find_rows_in_trees(forest, conditions)
    if conditions.in_tree and not len(rows):
        return _NO_ROWS
    filters.require_known_traits(forest, frozenset[str]().union(*conditions.required))
    if conditions.required:
        rows = filters.filter_by_fields(forest, conditions, rows, ["required"])
        if not len(rows):
            return _NO_ROWS
    filters.require_known_traits(forest, conditions.forbidden)
    rows = filters.filter_by_fields(forest, conditions, rows, ["forbidden", "member_of"])
    if conditions.member_of and not len(rows):
        return _NO_ROWS
    rows = filters.filter_by_fields(forest, conditions, rows, ["forbidden_aggregates"])
    rows = _filter_by_room(forest, query.resources, rows)
    if named_rows is not None:
        rows = rows[np.isin(rows, named_rows)]
    return forest.order.in_order(rows)


def _find_named_rows(
    forest: Forest, name: str | None, uuids: Collection[str] | None
) -> Rows | None:
    """Return the rows with this name and one of these UUIDs, ascending; None without both filters."""
    candidate_rows: list[set[int | None]] = []
    if name is not None:
        candidate_rows.append({forest.row_of_name(name)})
    if uuids is not None:
        candidate_rows.append({forest.row_of(uuid) for uuid in uuids})
    if not candidate_rows:
        return None
    rows = [row for row in set.intersection(*candidate_rows) if row is not None]
    return np.array(sorted(rows), dtype=np.int64)
