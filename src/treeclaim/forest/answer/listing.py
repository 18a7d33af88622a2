# SPDX-License-Identifier: Apache-2.0
"""Lists of providers (contract page 20, section 2)."""

from dataclasses import dataclass, replace

import numpy as np

from treeclaim.forest.domains import filters
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.provider_table import NO_ROW
from treeclaim.model.request import ProviderQuery


@dataclass(frozen=True, slots=True)
class ProviderColumns:
    """Some providers as clients see them, attribute by attribute.

    Attributes:
        uuid, root: Uuids, ASCII.
        name: Names.
        generation: Generations.
        parent: Uuids, None for a root.
        modified_at: Seconds since the epoch.
    """

    uuid: list[bytes]
    name: list[str]
    generation: list[int]
    parent: list[bytes | None]
    root: list[bytes]
    modified_at: list[float]


def provider_columns(forest: Forest, rows: list[int]) -> ProviderColumns:
    """Return some rows as clients see them."""
    at = np.array(rows, dtype=np.int64)
    parents = forest.parent.values[at]
    # The last row stands in for a parent that is not there.
    uuids = forest.uuid.values[parents].tolist()
    return ProviderColumns(
        uuid=forest.uuid.values[at].tolist(),
        name=forest.names(rows),
        generation=forest.generation.values[at].tolist(),
        parent=[
            uuid if row != NO_ROW else None
            for uuid, row in zip(uuids, parents.tolist(), strict=True)
        ],
        root=forest.uuid.values[forest.root.values[at]].tolist(),
        modified_at=forest.modified_at.values[at].tolist(),
    )


def matching_providers(forest: Forest, query: ProviderQuery) -> list[int]:
    """Return the rows of all providers that match, in canonical order.

    Only what a provider itself has counts: neither its tree nor sharing providers.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: for unknown names, unless an earlier
            filter left nothing (section 2.6).
    """
    conditions = query.conditions
    rows = filters.in_named_tree(forest, conditions, forest.living_rows)
    if conditions.in_tree and not len(rows):
        return []
    filters.require_known_traits(forest, frozenset[str]().union(*conditions.required))
    rows = filters.by_traits(forest, replace(conditions, forbidden=frozenset()), rows)
    if conditions.required and not len(rows):
        return []
    filters.require_known_traits(forest, conditions.forbidden)
    rows = filters.without_forbidden_traits(forest, conditions, rows)
    rows = filters.members(forest, conditions, rows)
    if conditions.member_of and not len(rows):
        return []
    rows = filters.not_outcast(forest, conditions, rows)
    filters.require_known_classes(forest, query.resources)
    for name, amount in query.resources.items():
        columns = forest.class_inventories(name)
        has, slots = columns.slots_of(rows)
        rows = rows[has][columns.fits(slots, amount)]
    rows = _named(forest, query, rows)
    if len(rows) > 1:
        order = forest.order
        rows = order.row[np.sort(order.place[rows])]
    found: list[int] = rows.tolist()
    return found


def _named(forest: Forest, query: ProviderQuery, rows: Rows) -> Rows:
    """Return those of some rows that have the name and the uuid asked for, if any."""
    for wanted, row in (
        (query.name, None if query.name is None else forest.row_of_name(query.name)),
        (query.uuid, None if query.uuid is None else forest.row_of(query.uuid)),
    ):
        if wanted is not None:
            rows = rows[rows == (NO_ROW if row is None else row)]
    return rows
