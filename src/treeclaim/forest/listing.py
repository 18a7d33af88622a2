# SPDX-License-Identifier: Apache-2.0
"""Lists of providers (contract page 20, section 2)."""

from dataclasses import replace

import numpy as np

from treeclaim.forest import filters
from treeclaim.forest.columns import Rows
from treeclaim.forest.forest import NO_ROW, Forest
from treeclaim.model.request import ProviderQuery, RequestGroup


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
    if query.resources:
        rows = rows[
            forest.mask_of([filters.fitting(forest, RequestGroup(resources=query.resources))])[
                rows
            ]
        ]
    rows = _named(forest, query, rows)
    order = forest.order
    found: list[int] = order.row[np.sort(order.place[rows])].tolist()
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
