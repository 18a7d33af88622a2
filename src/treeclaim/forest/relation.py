# SPDX-License-Identifier: Apache-2.0
"""Who can serve one slot of a request, and under which anchors.

A slot is a place in a candidate that takes one provider: each suffixed group is one, each resource
class of the unsuffixed group is one. A relation is a set of pairs (anchor root, provider); both
are places of the canonical order. It holds the local pairs, provider and its own root, and the
lent ones, a sharing provider and each root of a tree that has an aggregate in common with it
(`anchors` of contract page 90, section 4).
"""

from dataclasses import dataclass

import numpy as np

from treeclaim.forest import filters
from treeclaim.forest.columns import Rows, merged
from treeclaim.forest.forest import Forest
from treeclaim.model.request import NO_GROUP, ProviderConditions, RequestGroup


@dataclass(frozen=True, slots=True)
class Relation:
    """Pairs (anchor, provider) as places, sorted by anchor, then by provider; no pair twice.

    Attributes:
        anchor: int64, shape (pairs,).
        provider: int64, shape (pairs,).
    """

    anchor: Rows
    provider: Rows


def suffixed_relation(forest: Forest, group: RequestGroup) -> Relation:
    """Relate the providers that satisfy a whole suffixed group (page 90, sections 3.3 and 3.4)."""
    rows = filters.fitting(forest, group)
    rows = filters.meeting(forest, group.conditions, rows)
    return _relate(forest, rows, _sharing(forest, rows))


def unsuffixed_relation(forest: Forest, group: RequestGroup, resource_class: str) -> Relation:
    """Relate the providers that may supply one class of the unsuffixed group (section 3.2).

    That the anchor root is in no forbidden aggregate is for `anchors_allowed` to check. Required
    traits are those of all providers of the group together; only where there is a single class
    do they bind its provider alone.
    """
    rows = filters.fitting_rows(forest, group, resource_class)
    if len(group.resources) == 1:
        rows = filters.by_traits(forest, group.conditions, rows)
    return _of_unsuffixed(forest, group.conditions, rows)


def split_relation(
    forest: Forest, conditions: ProviderConditions, resource_class: str, amount: int
) -> Relation:
    """Relate the providers that may give some part of an amount to the unsuffixed group."""
    rows = filters.giving_rows(forest, resource_class, amount)
    return _of_unsuffixed(forest, conditions, rows)


def _of_unsuffixed(forest: Forest, conditions: ProviderConditions, rows: Rows) -> Relation:
    if conditions.is_empty:
        return _relate(forest, rows, _sharing(forest, rows))
    rows = filters.without_forbidden_traits(forest, conditions, rows)
    rows = filters.in_named_subtree(forest, conditions, rows)
    rows = filters.not_outcast(forest, conditions, rows)
    local = filters.in_named_tree(forest, conditions, rows)
    local = filters.spanned(forest, conditions, local)
    if conditions.in_tree:
        return _relate(forest, local, rows[:0])
    return _relate(forest, local, filters.members(forest, conditions, _sharing(forest, rows)))


def relations_of(forest: Forest, group: RequestGroup) -> list[Relation]:
    """Return the relations of a group's slots: one if suffixed, else one for each class."""
    if group.suffix != NO_GROUP:
        return [suffixed_relation(forest, group)]
    return [unsuffixed_relation(forest, group, name) for name in group.resources]


def anchors_allowed(
    forest: Forest, root: ProviderConditions, unsuffixed: ProviderConditions | None
) -> Rows:
    """Return the places of the roots that may be anchors, ascending (page 90, `R` and `out(a)`).

    Args:
        forest: Where to look.
        root: What an anchor must be itself.
        unsuffixed: The conditions of the unsuffixed group, if there is one.
    """
    order = forest.order
    rows = filters.meeting(forest, root, order.row[order.roots])
    if unsuffixed is not None:
        rows = filters.not_outcast(forest, unsuffixed, rows)
    return order.place[rows]


def _sharing(forest: Forest, rows: Rows) -> Rows:
    trait_id = forest.catalogue.sharing_trait_id
    if trait_id is None:
        return rows[:0]
    sharing = forest.rows_with_trait(trait_id)
    return np.intersect1d(rows, sharing, assume_unique=True) if len(sharing) else rows[:0]


def _relate(forest: Forest, local: Rows, lent: Rows) -> Relation:
    order = forest.order
    provider = order.place[local]
    if not order.is_row_order:
        provider = np.sort(provider)
    anchor = order.root[provider]
    if not len(lent):
        return Relation(anchor, provider)
    # One number for a pair makes the union of pairs one call.
    count = len(order.row)
    keys = merged([anchor * count + provider, _lent_keys(forest, lent)])
    return Relation(keys // count, keys % count)


def _lent_keys(forest: Forest, lent: Rows) -> Rows:
    order = forest.order
    count = len(order.row)
    roots_of: dict[str, Rows] = {}
    keys = [np.empty(0, dtype=np.int64)]
    for row in lent.tolist():
        for aggregate in forest.aggregates(row):
            if aggregate not in roots_of:
                places = order.place[forest.rows_in_aggregate(aggregate)]
                roots_of[aggregate] = order.root[places] * count
            keys.append(roots_of[aggregate] + order.place[row])
    return np.concatenate(keys)
