# SPDX-License-Identifier: Apache-2.0
"""Which providers meet the conditions of one request group, as masks over all rows.

A name in a condition that is in no catalogue is the caller's error; `require_known_names` finds
it before anything is searched.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from treeclaim.forest.columns import Mask, Rows
from treeclaim.forest.forest import Forest
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.request import CandidateRequest, ProviderConditions


def require_known_names(forest: Forest, request: CandidateRequest) -> None:
    """Check that every trait and resource class of a request exists.

    Raises:
        TraitsNotFoundError: for the first set of traits with an unknown name.
        ResourceClassNotFoundError: for the first unknown class.

    The order is that of contract page 90, section 2, step G.
    """
    require_known_traits(forest, request.root_required | request.root_forbidden)
    for group in request.groups:
        require_known_classes(forest, group.resources)
        required = frozenset[str]().union(*group.conditions.required)
        require_known_traits(forest, required)
        require_known_traits(forest, group.conditions.forbidden)


def require_known_traits(forest: Forest, names: Iterable[str]) -> None:
    """Raise TraitsNotFoundError if some of these traits do not exist."""
    missing = sorted(set(names) - forest.catalogue.traits.keys())
    if missing:
        raise TraitsNotFoundError(missing)


def require_known_classes(forest: Forest, resources: Mapping[str, int]) -> None:
    """Raise ResourceClassNotFoundError for the first resource class that does not exist."""
    for name in resources:
        if name not in forest.catalogue.resource_classes:
            raise ResourceClassNotFoundError(name)


def with_any_trait(forest: Forest, names: Iterable[str]) -> Mask:
    """Return the rows that have at least one of these (existing) traits."""
    traits = forest.catalogue.traits
    return forest.mask_of(forest.rows_with_trait(traits[name].id) for name in names)


def in_any_aggregate(forest: Forest, aggregates: Iterable[str]) -> Mask:
    """Return the rows that are themselves in at least one of these aggregates."""
    return forest.mask_of(forest.rows_in_aggregate(one) for one in aggregates)


def with_traits(forest: Forest, conditions: ProviderConditions) -> Mask:
    """Return the living rows with all required and none of the forbidden traits themselves."""
    mask = without_forbidden_traits(forest, conditions)
    for names in conditions.required:
        mask &= with_any_trait(forest, names)
    return mask


def without_forbidden_traits(forest: Forest, conditions: ProviderConditions) -> Mask:
    """Return the living rows that have none of the forbidden traits."""
    mask: Mask = forest.alive.values.copy()
    if conditions.forbidden:
        mask &= ~with_any_trait(forest, conditions.forbidden)
    return mask


def member(forest: Forest, conditions: ProviderConditions) -> Mask:
    """Return the rows that are themselves members as `member_of` asks: `in` of page 90."""
    mask = np.ones(forest.row_count, dtype=np.bool_)
    for aggregates in conditions.member_of:
        mask &= in_any_aggregate(forest, aggregates)
    return mask


def outcast(forest: Forest, conditions: ProviderConditions) -> Mask:
    """Return the rows that are themselves in a forbidden aggregate: `out` of page 90."""
    return in_any_aggregate(forest, conditions.forbidden_aggregates)


def in_named_tree(forest: Forest, conditions: ProviderConditions) -> Mask:
    """Return the rows of the tree that `in_tree` names; all rows where it names none."""
    if conditions.in_tree is None:
        return np.ones(forest.row_count, dtype=np.bool_)
    mask = np.zeros(forest.row_count, dtype=np.bool_)
    row = forest.row_of(conditions.in_tree)
    if row is not None:
        root = int(forest.root.values[row])
        mask[root : int(forest.end.values[root])] = True
    return mask


def meeting(forest: Forest, conditions: ProviderConditions) -> Mask:
    """Return the living rows that meet all conditions by themselves."""
    return (
        with_traits(forest, conditions)
        & member(forest, conditions)
        & ~outcast(forest, conditions)
        & in_named_tree(forest, conditions)
    )


def fitting_all(forest: Forest, resources: Mapping[str, int], rows: Rows) -> Rows:
    """Return those of some ascending rows where every amount fits, by class name."""
    for name, amount in resources.items():
        fitting = fitting_rows(forest, name, amount)
        rows = rows[forest.mask_of([fitting])[rows]]
    return rows


def fitting_rows(forest: Forest, resource_class: str, amount: int) -> Rows:
    """Return the rows where an amount of one class fits, ascending."""
    columns = forest.classes.get(forest.catalogue.resource_classes[resource_class].id)
    if columns is None:
        return np.empty(0, dtype=np.int64)
    return columns.rows(columns.fitting(amount))
