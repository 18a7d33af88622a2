# SPDX-License-Identifier: Apache-2.0
"""Filters: providers that meet the conditions of a request group.

Each filter narrows rows in any order, keeps their order, and does nothing if its condition is not
set. Unknown names in conditions are errors of the client, which `require_known_names` finds before
the search begins.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.expressions import filter_by_expressions
from treeclaim.forest.table.attributes import ABSENT
from treeclaim.forest.table.columns import NO_ROW, Integers, Mask, Rows, expand_ranges
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import (
    PreferredTraitsNotFoundError,
    ResourceClassNotFoundError,
    TraitsNotFoundError,
)
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.parts import AGGREGATES, CONDITIONS, TRAITS
from treeclaim.model.provider import AttributeKind, Condition, Effect
from treeclaim.model.request import CandidateRequest, ProviderConditions

_KINDS = max(AttributeKind) + 1


def require_known_names(forest: Forest, request: CandidateRequest) -> None:
    """Check that every trait and resource class of a request exists.

    The order of the checks is that of contract page 90, section 2, step G.

    Raises:
        TraitsNotFoundError: for the first set of traits with an unknown name.
        PreferredTraitsNotFoundError: for unknown preferred traits.
        ResourceClassNotFoundError: for the first unknown class.
    """
    root = request.root
    if root.required or root.forbidden:
        require_known_traits(forest, root.forbidden.union(*root.required))
    for group in request.groups:
        require_known_classes(forest, group.resources)
        required, forbidden = group.conditions.required, group.conditions.forbidden
        if required or forbidden:
            require_known_traits(forest, frozenset[str]().union(*required))
            require_known_traits(forest, forbidden)
    if request.order is not None:
        names = {preference.trait for preference in request.order.preferences}
        missing = sorted(names - forest.catalogue.traits.keys())
        if missing:
            raise PreferredTraitsNotFoundError(missing)


def require_known_traits(forest: Forest, names: Iterable[str]) -> None:
    """Raise TraitsNotFoundError if any of these traits does not exist."""
    missing = set(names).difference(forest.catalogue.traits)
    if missing:
        raise TraitsNotFoundError(sorted(missing))


def require_known_classes(forest: Forest, resources: Iterable[str]) -> None:
    """Raise ResourceClassNotFoundError for the first resource class that does not exist."""
    for name in resources:
        if name not in forest.catalogue.resource_classes:
            raise ResourceClassNotFoundError(name)


def have_any_trait(forest: Forest, names: Collection[str]) -> Mask:
    """Return which rows have at least one of these existing traits; dead rows have none."""

    def make() -> Mask:
        traits = forest.catalogue.traits
        mask = forest.links[TRAITS.name].mask(traits[name].id for name in names)
        mask &= forest.alive.values
        return mask

    return forest.cache.get(("rows with any trait", frozenset(names)), make)


def sharing_rows(forest: Forest) -> Mask:
    """Return which rows are sharing providers, as a read-only mask."""
    if SHARING_TRAIT in forest.catalogue.traits:
        return have_any_trait(forest, (SHARING_TRAIT,))
    return np.zeros(forest.row_count, dtype=np.bool_)


def values_by_row(forest: Forest, name: str) -> Integers:
    """Return a number for the value of an attribute, by row; `ABSENT` for a missing value.

    Two numbers are equal if and only if type and value are equal.
    """

    def make() -> Integers:
        kinds, values = forest.attributes.at(name, np.arange(forest.row_count))
        return values * _KINDS + kinds

    return forest.cache.get(("values by row", name), make)


def likenesses_of_values(forest: Forest, name: str) -> Integers:
    """Return numbers, by row, that are equal in trees whose providers agree on which values are equal.

    The values themselves may differ: names of switches, say, differ between hosts. The number is the
    position in the tree, from 1 for the root, of the first provider with the same value; `ABSENT` for a
    missing value.
    """

    def make() -> Integers:
        values, roots = values_by_row(forest, name), forest.root.values
        has = np.flatnonzero((values != ABSENT) & forest.alive.values)
        has = has[np.lexsort((has, values[has], roots[has]))]
        is_new = np.diff(values[has], prepend=ABSENT) != 0
        is_new |= np.diff(roots[has], prepend=-1) != 0
        first = has[np.maximum.accumulate(np.where(is_new, np.arange(len(has)), 0))]
        likenesses = np.full_like(values, ABSENT)
        likenesses[has] = first - roots[has] + 1
        return likenesses

    return forest.cache.get(("likenesses of values", name), make)


def _is_below(forest: Forest, heads: Rows) -> Mask:
    """Return which rows are heads, or below a head; arbitrary for dead rows."""
    is_below = np.zeros(forest.row_count, dtype=np.bool_)
    is_below[_rows_below(forest, heads)] = True
    return is_below


def _rows_below(forest: Forest, heads: Rows) -> Rows:
    """Return the rows of the subtrees of living rows, ascending, each once."""
    first = np.unique(heads)
    end = forest.end.values[first]
    # Subtrees are intervals of rows, either nested or disjoint.
    is_apart = np.append(True, first[1:] >= np.maximum.accumulate(end)[:-1])[: len(first)]
    first, counts = first[is_apart], (end - first)[is_apart]
    return expand_ranges(first, counts)


def find_rows_in_trees(forest: Forest, conditions: ProviderConditions) -> Rows:
    """Return the rows of the trees that `in_tree` names, ascending; all living rows if it names none."""
    if not conditions.in_tree:
        return forest.living_rows
    return _rows_below(forest, _named_roots(forest, conditions.in_tree))


def _named_rows(forest: Forest, uuids: Iterable[str]) -> Rows:
    rows = [row for uuid in uuids if (row := forest.row_of(uuid)) is not None]
    return np.array(rows, dtype=np.int64)


def _named_roots(forest: Forest, uuids: Iterable[str]) -> Rows:
    roots: Rows = forest.root.values[_named_rows(forest, uuids)]
    return roots


def _are_members(forest: Forest, aggregates: Sequence[Collection[str]], rows: Rows) -> Mask:
    """Return which rows are themselves in at least one aggregate of each set."""
    masks = [forest.links[AGGREGATES.name].mask(names)[rows] for names in aggregates]
    are_members: Mask = np.logical_and.reduce(masks)
    return are_members


def _are_in_trees(forest: Forest, uuids: Iterable[str], rows: Rows) -> Mask:
    return np.isin(forest.root.values[rows], _named_roots(forest, uuids))


_JUDGES: Mapping[str, Callable[[Forest, Any, Rows], Mask]] = {
    "in_tree": _are_in_trees,
    "not_in_tree": lambda forest, uuids, rows: ~_are_in_trees(forest, uuids, rows),
    "in_subtree": lambda forest, uuids, rows: _is_below(forest, _named_rows(forest, uuids))[rows],
    "required": lambda forest, traits, rows: np.logical_and.reduce(
        [have_any_trait(forest, names)[rows] for names in traits]
    ),
    "forbidden": lambda forest, names, rows: ~have_any_trait(forest, names)[rows],
    "member_of": _are_members,
    "forbidden_aggregates": lambda forest, names, rows: (
        ~forest.links[AGGREGATES.name].mask(names)[rows]
    ),
}
"""Functions that return which rows meet a condition themselves, by field of `ProviderConditions`."""


def filter_by_fields(
    forest: Forest, conditions: ProviderConditions, rows: Rows, parts: Iterable[str] = _JUDGES
) -> Rows:
    """Return the rows that meet some conditions themselves; expressions are ignored."""
    for part in parts:
        value = getattr(conditions, part)
        if value:
            rows = rows[_JUDGES[part](forest, value, rows)]
    return rows


def filter_by_conditions(
    forest: Forest, conditions: ProviderConditions, rows: Rows, budget: Budget = UNBOUNDED
) -> Rows:
    """Return the rows that meet all conditions themselves."""
    if conditions.is_empty:
        return rows
    rows = filter_by_fields(forest, conditions, rows)
    return filter_by_expressions(forest.attributes, conditions.where, rows, budget)


def filter_by_membership(forest: Forest, conditions: ProviderConditions, rows: Rows) -> Rows:
    """Return the rows that meet `member_of`, themselves or by their root.

    The provider or its root must meet all of `member_of` (contract page 90, section 3.2).
    """
    if not conditions.member_of:
        return rows
    is_member = _are_members(forest, conditions.member_of, np.arange(forest.row_count))
    roots: Rows = forest.root.values[rows]
    return rows[is_member[rows] | is_member[roots]]


def drop_barred_rows(
    forest: Forest, conditions: ProviderConditions, rows: Rows, classes: Iterable[str]
) -> Rows:
    """Return the rows that may get new allocations (contract page 102, section 3).

    The result excludes rows with a condition in force, and their descendants. It also excludes rows whose
    inventories of the classes consume inventories of such rows.
    """
    in_force = forest.conditions_in_force(conditions.tolerates)
    if not in_force:
        return rows

    barred = forest.cache.get(
        ("barred", conditions.tolerates), lambda: _at_or_below(forest, in_force)
    )
    rows = rows[~barred[rows]]
    for name in classes:
        consume = np.zeros(len(rows), dtype=np.bool_)
        for use, users in forest.uses_at(name, rows):
            consume[users] |= barred[rows[users] + use.offset]
        rows = rows[~consume]
    return rows


def rows_to_leave(forest: Forest, tolerated: Collection[str] = ()) -> Mask:
    """Return which rows are at or below a condition `leave` in force that is not tolerated."""
    in_force = forest.conditions_in_force(tolerated)
    return _at_or_below(forest, [each for each in in_force if each.effect is Effect.LEAVE])


def rows_armed_to_leave(forest: Forest) -> Mask:
    """Return which rows are at or below a condition `leave` that begins with the first use."""
    armed = (each for each in forest.links[CONDITIONS.name] if each.on_use and not each.began)
    return _at_or_below(forest, [each for each in armed if each.effect is Effect.LEAVE])


def armed_heads(forest: Forest) -> Rows | None:
    """Return the topmost provider at or above each row whose `on_use` condition has not begun.

    Returns:
        Rows by row, `NO_ROW` where there is none; None if no condition waits for a use.
    """
    links = forest.links[CONDITIONS.name]
    armed = [each for each in links if each.on_use and not each.began]
    if forest.ignores_conditions or not armed:
        return None

    def make() -> Rows:
        heads = np.full(forest.row_count, NO_ROW, dtype=np.int64)
        rows = [links.rows(condition, forest.alive.values) for condition in armed]
        end = 0
        for row in np.unique(np.concatenate(rows)).tolist():
            if row >= end:
                end = int(forest.end.values[row])
                heads[row:end] = row
        return heads

    return forest.cache.get("armed heads", make)


def _at_or_below(forest: Forest, conditions: Iterable[Condition]) -> Mask:
    links = forest.links[CONDITIONS.name]
    heads = [links.rows(condition, forest.alive.values) for condition in conditions]
    return _is_below(forest, np.concatenate([np.arange(0), *heads]))


def filter_by_classes(forest: Forest, classes: Iterable[str], rows: Rows) -> Rows:
    """Return the rows that have inventories of all these classes."""
    for name in classes:
        rows = rows[forest.class_inventories(name).indices_of(rows)[0]]
    return rows


def find_rows_with_classes(forest: Forest, classes: Collection[str]) -> Rows:
    """Return the rows with inventories of all these classes, ascending; all living rows without classes."""
    if not classes:
        return forest.living_rows
    first, *further_classes = classes
    columns = forest.class_inventories(first)
    return filter_by_classes(forest, further_classes, columns.row.values[columns.living_indices()])
