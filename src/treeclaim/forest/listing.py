# SPDX-License-Identifier: Apache-2.0
"""Lists of providers (contract page 20, section 2)."""

import numpy as np

from treeclaim.forest import filters
from treeclaim.forest.columns import Mask
from treeclaim.forest.forest import Forest
from treeclaim.model.request import ProviderQuery


def matching_providers(forest: Forest, query: ProviderQuery) -> list[int]:
    """Return the rows of all providers that match, in canonical order.

    Only what a provider itself has counts: neither its tree nor sharing providers.

    Raises:
        TraitsNotFoundError, ResourceClassNotFoundError: for unknown names, unless an earlier
            filter left nothing (section 2.6).
    """
    conditions = query.conditions
    mask = _named(forest, query) & filters.in_named_tree(forest, conditions)
    if conditions.in_tree is not None and not mask.any():
        return []
    filters.require_known_traits(forest, frozenset[str]().union(*conditions.required))
    for names in conditions.required:
        mask &= filters.with_any_trait(forest, names)
    if conditions.required and not mask.any():
        return []
    filters.require_known_traits(forest, conditions.forbidden)
    mask &= filters.without_forbidden_traits(forest, conditions)
    mask &= filters.member(forest, conditions)
    if conditions.member_of and not mask.any():
        return []
    mask &= ~filters.outcast(forest, conditions)
    filters.require_known_classes(forest, query.resources)
    rows = filters.fitting_all(forest, query.resources, np.flatnonzero(mask))
    order = forest.order
    found: list[int] = order.row[np.sort(order.place[rows])].tolist()
    return found


def _named(forest: Forest, query: ProviderQuery) -> Mask:
    mask: Mask = forest.alive.values.copy()
    for wanted, row in (
        (query.name, None if query.name is None else forest.row_of_name(query.name)),
        (query.uuid, None if query.uuid is None else forest.row_of(query.uuid)),
    ):
        if wanted is not None:
            mask &= forest.mask_of([] if row is None else [np.array([row])])
    return mask
