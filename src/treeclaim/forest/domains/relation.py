# SPDX-License-Identifier: Apache-2.0
"""The providers that can serve one slot of a request, and their anchors.

A slot is a place in a candidate for one provider: each suffixed group is one, each resource class of
the unsuffixed group is one. A relation is a set of pairs (anchor root, provider). Local pairs are a
provider and its own root; lent pairs are a sharing provider and the root of a tree that has an
aggregate in common with it (`anchors` of contract page 90, section 4).

Apart from amounts, pairs depend on the shape of the Forest alone. The Forest therefore caches them,
and a request only compares its amounts with the free units.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains import consumed, filters
from treeclaim.forest.domains.expressions import filter_by_expressions
from treeclaim.forest.domains.pairs import Pairs, follow_pairs
from treeclaim.forest.table.class_inventories import Indices
from treeclaim.forest.table.columns import (
    Integers,
    Mask,
    Rows,
    Trees,
    merge_rows,
)
from treeclaim.forest.table.forest import Forest
from treeclaim.model.parts import AGGREGATES
from treeclaim.model.request import NO_GROUP, STRICT, Leniency, ProviderConditions, RequestGroup


@dataclass(frozen=True)
class Relation:
    """Pairs, and which of them have room for the amounts of a request (`fits`; None for all)."""

    pairs: Pairs
    fits: Mask | None

    @property
    def has_sharing(self) -> bool:
        """Return whether any provider with room is a sharing one."""
        sharing = self.pairs.sharing
        if self.fits is None or not len(sharing):
            return bool(len(sharing))
        return bool(self.fits[sharing].any())

    def reached(self, first: int, end: int) -> Mask:
        """Return which roots of a range have any pair, shape (end - first,)."""
        if self.fits is None:
            return self.pairs.reached[first:end]
        starts = self.pairs.starts[first : end + 1]
        before = counts_before(self.fits[starts[0] : starts[-1]])[starts - starts[0]]
        reached: Mask = before[1:] > before[:-1]
        return reached

    def providers_of(self, tree: int) -> Rows:
        """Return the providers under an anchor in canonical order."""
        part = slice(self.pairs.starts[tree], self.pairs.starts[tree + 1])
        providers = self.pairs.provider[part]
        return providers if self.fits is None else providers[self.fits[part]]


def have_common_provider(forest: Forest, first: Pairs, second: Pairs) -> bool:
    """Return whether both have a provider in common, under any anchors."""

    def make() -> np.bool_:
        is_provider = np.zeros(forest.row_count, dtype=np.bool_)
        is_provider[first.provider] = True
        return np.bool_(is_provider[second.provider].any())

    return first is second or bool(
        forest.cache.get(("common provider", first.serial, second.serial), make)
    )


def counts_before(mask: Mask) -> Integers:
    """Return the number of true values before each position, and the total."""
    before = np.zeros(len(mask) + 1, dtype=np.int64)
    mask.cumsum(out=before[1:])
    return before


def build_relations(
    forest: Forest, group: RequestGroup, budget: Budget = UNBOUNDED
) -> list[Relation]:
    """Return the relations of a group's slots: one for a suffixed group, else one for each class."""
    conditions = _effective_conditions(forest, group.conditions, gives=bool(group.resources))
    if group.suffix != NO_GROUP:
        budget.check()
        classes = tuple(sorted(group.resources))
        pairs = _cached_pairs(forest, classes, conditions, _suffixed_pairs, budget)
        return [_compare_amounts(forest, group, pairs)]
    # The providers of the group must have the required traits together, so a single class needs them
    # all from its provider.
    make = _single_class_pairs if len(group.resources) == 1 else _unsuffixed_pairs
    relations = []
    for name in group.resources:
        budget.check()
        pairs = _cached_pairs(forest, (name,), conditions, make, budget)
        relations.append(_compare_amounts(forest, group, pairs))
    return relations


def build_split_relation(
    forest: Forest, group: RequestGroup, resource_class: str, budget: Budget = UNBOUNDED
) -> Relation:
    """Return the providers that may give a part of an amount of the unsuffixed group."""
    conditions = _effective_conditions(forest, group.conditions, gives=True)
    pairs = _cached_pairs(forest, (resource_class,), conditions, _unsuffixed_pairs, budget)
    columns, indices = forest.class_inventories(resource_class), pairs.indices[resource_class]
    if group.leniency.get(resource_class, STRICT).ignore_units:
        return Relation(pairs, columns.fits(indices, 1, Leniency(ignore_units=True)))
    return Relation(pairs, columns.fits_part(indices, group.resources[resource_class]))


def pair_all_inventories(forest: Forest, resource_class: str, budget: Budget = UNBOUNDED) -> Pairs:
    """Return the pairs of each anchor with all inventories of a class that it reaches."""
    return _cached_pairs(forest, (resource_class,), _ANY_PROVIDER, _unsuffixed_pairs, budget)


def find_allowed_anchors(
    forest: Forest, root: ProviderConditions, unsuffixed: ProviderConditions | None
) -> Mask | None:
    """Return which roots may be anchors (page 90, `R` and `out(a)`), shape (roots,); None for all.

    `root` holds the conditions of the anchor itself; `unsuffixed` those of the unsuffixed group, if any.
    """
    outcast = frozenset[str]() if unsuffixed is None else unsuffixed.forbidden_aggregates
    if root.is_empty and not outcast:
        return None

    def make() -> Mask:
        order = forest.order
        rows = filters.filter_by_conditions(forest, root, order.roots)
        if unsuffixed is not None:
            rows = filters.filter_by_fields(forest, unsuffixed, rows, ["forbidden_aggregates"])
        allowed = np.zeros(len(order.roots), dtype=np.bool_)
        allowed[order.tree[rows]] = True
        return allowed

    return forest.cache.get(("anchors", root, outcast), make)


def _compare_amounts(forest: Forest, group: RequestGroup, pairs: Pairs) -> Relation:
    masks, consuming = [], {}
    for name, indices in pairs.indices.items():
        amount, leniency = group.resources[name], group.leniency.get(name, STRICT)
        masks.append(forest.class_inventories(name).fits(indices, amount, leniency))
        if not (leniency.ignore_capacity or leniency.ignore_consumed_capacity):
            consuming[name] = amount
    if consumed.has_consumption(forest):
        has_room = consumed.have_room_for_consumed(forest, pairs, consuming)
        if has_room is not None:
            masks.append(has_room)
    fits = reduce(and_, masks) if masks else None
    return Relation(pairs, None if fits is None or fits.all() else fits)


_ANY_PROVIDER = ProviderConditions(tolerates=None)
"""Conditions that every provider meets."""

_FindProviders = Callable[[Forest, ProviderConditions, Rows, Budget], tuple[Rows, Rows]]
"""Finds the rows that serve their own tree, and the sharing ones that serve others."""


def _cached_pairs(
    forest: Forest,
    classes: tuple[str, ...],
    conditions: ProviderConditions,
    make: _FindProviders,
    budget: Budget,
) -> Pairs:
    def serving(rows: Rows) -> tuple[Rows, Rows]:
        rows = filters.drop_barred_rows(forest, conditions, rows, classes)
        return make(forest, conditions, rows, budget)

    key = (make, classes, conditions)
    cached_pairs = forest.pairs.find(key)
    if isinstance(cached_pairs, Pairs) and cached_pairs.moment == forest.splices.mark:
        return cached_pairs
    # Pairs are written in place, so the pairs of a failed update must not stay in the cache.
    earlier_pairs = forest.pairs.take(key)
    pairs = None
    if isinstance(earlier_pairs, Pairs):
        pairs = follow_pairs(
            forest,
            earlier_pairs,
            lambda rows: serving(filters.filter_by_classes(forest, classes, rows)),
        )
    if pairs is None:
        pairs = _make_pairs(
            forest, classes, *serving(filters.find_rows_with_classes(forest, classes))
        )
    forest.pairs.keep(key, pairs)
    return pairs


def _effective_conditions(
    forest: Forest, conditions: ProviderConditions, *, gives: bool
) -> ProviderConditions:
    """Return the conditions with those tolerations that have an effect, for equal keys of caches."""
    tolerates = conditions.tolerates
    if not forest.has_conditions:
        tolerates = frozenset()
    elif forest.ignores_conditions or not gives:
        # A provider without new allocations is not subject to conditions.
        tolerates = None
    if tolerates == conditions.tolerates:
        return conditions
    return replace(conditions, tolerates=tolerates)


def _suffixed_pairs(
    forest: Forest, conditions: ProviderConditions, rows: Rows, budget: Budget
) -> tuple[Rows, Rows]:
    """Find the providers that can serve a suffixed group (page 90, sections 3.3 and 3.4)."""
    rows = filters.filter_by_conditions(forest, conditions, rows, budget)
    return rows, _select_sharing(forest, rows)


def _single_class_pairs(
    forest: Forest, conditions: ProviderConditions, rows: Rows, budget: Budget
) -> tuple[Rows, Rows]:
    return _unsuffixed_pairs(
        forest,
        conditions,
        filters.filter_by_fields(forest, conditions, rows, ["required"]),
        budget,
    )


def _unsuffixed_pairs(
    forest: Forest, conditions: ProviderConditions, rows: Rows, budget: Budget
) -> tuple[Rows, Rows]:
    """Find the providers that may supply one class of the unsuffixed group (section 3.2).

    `find_allowed_anchors` checks that the anchor root is in no forbidden aggregate.
    """
    if conditions.is_empty:
        return rows, _select_sharing(forest, rows)
    of_providers = ("forbidden", "in_subtree", "forbidden_aggregates")
    rows = filters.filter_by_fields(forest, conditions, rows, of_providers)
    rows = filter_by_expressions(forest.attributes, conditions.where, rows, budget)
    local = filters.filter_by_fields(forest, conditions, rows, ["in_tree"])
    local = filters.filter_by_membership(forest, conditions, local)
    if conditions.in_tree:
        return local, rows[:0]
    return local, filters.filter_by_fields(
        forest, conditions, _select_sharing(forest, rows), ["member_of"]
    )


def _select_sharing(forest: Forest, rows: Rows) -> Rows:
    return rows[filters.sharing_rows(forest)[rows]]


def _make_pairs(forest: Forest, classes: Iterable[str], local: Rows, lent: Rows) -> Pairs:
    """Pair providers with their own root, and sharing providers with the roots they share with."""
    order = forest.order
    provider = order.in_order(local)
    anchor = order.tree[provider]
    if len(lent):
        # Each pair is encoded as one number, so that one call merges both lists.
        keys = merge_rows([anchor * order.span + order.rank(provider), _lent_keys(forest, lent)])
        anchor = keys // order.span
        provider = order.rows_at(keys - anchor * order.span)
    counts = np.bincount(anchor, minlength=len(order.roots))
    return Pairs(
        starts=np.concatenate([[0], counts.cumsum()]),
        provider=provider,
        indices={name: _inventory_indices(forest, name, provider) for name in classes},
        sharing=np.flatnonzero(filters.sharing_rows(forest)[provider]),
        is_local=not len(lent),
        moment=forest.splices.mark,
    )


def _inventory_indices(forest: Forest, resource_class: str, rows: Rows) -> Indices:
    columns = forest.class_inventories(resource_class)
    _, indices = columns.indices_of(rows)
    # Consecutive indices are the usual case, and a slice is much faster to read.
    is_range = len(indices) > 0 and bool((indices[1:] - indices[:-1] == 1).all())
    return slice(int(indices[0]), int(indices[-1]) + 1) if is_range else indices


def _lent_keys(forest: Forest, lent: Rows) -> Rows:
    order = forest.order
    trees_of: dict[str, Trees] = {}
    keys = [np.empty(0, dtype=np.int64)]
    ranks = order.rank(lent).tolist()
    for row, rank in zip(lent.tolist(), ranks, strict=True):
        for aggregate in forest.links_of(AGGREGATES.name, row):
            if aggregate not in trees_of:
                trees_of[aggregate] = order.tree[forest.rows_in_aggregate(aggregate)]
            keys.append(trees_of[aggregate] * order.span + rank)
    return np.concatenate(keys)
