# SPDX-License-Identifier: Apache-2.0
"""Removes options of slots before they are combined: by attribute values and by heads of `same_subtree`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.domain import Domain, slots_served, sum_ranges
from treeclaim.forest.question.slots import JointConstraint, SlotComparison
from treeclaim.forest.table.columns import Integers, Mask, merge_rows, search_ascending
from treeclaim.forest.table.order import TreeOrder


def narrow_by_values(
    domains: Sequence[Domain],
    comparisons: Sequence[SlotComparison],
    joint_constraints: Sequence[JointConstraint],
    values: Mapping[str, Integers],
    budget: Budget,
) -> list[Domain]:
    """Return domains without the options with a value that another slot of `match` cannot have.

    Equal slots share a domain, before and afterwards. `values` has the number of each row's value, by
    name of the attribute.
    """
    narrowed = list(domains)
    for comparison in comparisons:
        if not comparison.is_same:
            continue
        budget.check()
        compared_values = values[comparison.name]
        distinct = {id(narrowed[slot]): narrowed[slot] for slot in comparison.slots}
        keys_by_domain = {
            number: _keys(domain, compared_values) for number, domain in distinct.items()
        }
        keys = list(keys_by_domain.values())
        for constraint in joint_constraints:
            members = [slot for slot in constraint.slots if slot in comparison.slots]
            if len(members) > 1:
                keys.append(_keys_with_room(constraint, members, narrowed, compared_values))
        common = reduce(np.intersect1d, keys)
        kept_domains = {
            number: domain.restrict(np.isin(keys_by_domain[number], common))
            for number, domain in distinct.items()
        }
        for slot in comparison.slots:
            narrowed[slot] = kept_domains[id(narrowed[slot])]
    return narrowed


def _keys(domain: Domain, values: Integers) -> Integers:
    """Return a number for the anchor and value of each option, int64, shape (options,)."""
    distinct_values, number = np.unique(values, return_inverse=True)
    anchors = np.arange(len(domain.starts) - 1).repeat(domain.counts)
    keys: Integers = anchors * len(distinct_values) + number[domain.rows]
    return keys


def _keys_with_room(
    constraint: JointConstraint,
    members: Sequence[int],
    domains: Sequence[Domain],
    values: Integers,
) -> Integers:
    """Return the keys of options that together serve enough slots."""
    distinct = list({id(domains[slot]): domains[slot] for slot in members}.values())
    _, first = np.unique(np.concatenate([domain.keys for domain in distinct]), return_index=True)
    keys = np.concatenate([_keys(domain, values) for domain in distinct])[first]
    served_counts = np.concatenate([slots_served(constraint, domain) for domain in distinct])[
        first
    ]
    distinct_keys, number = np.unique(keys, return_inverse=True)
    return distinct_keys[
        np.bincount(number, served_counts, minlength=len(distinct_keys)) >= len(members)
    ]


def find_anchors_with_values(
    domains: Sequence[Domain],
    comparisons: Sequence[SlotComparison],
    values: Mapping[str, Integers],
    anchor_count: int,
    budget: Budget,
) -> Mask:
    """Return the mask of anchors where compared slots have options, and `distinct` slots enough values."""
    possible = np.ones(anchor_count, dtype=np.bool_)
    for comparison in comparisons:
        budget.check()
        for slot in comparison.slots:
            possible &= domains[slot].counts > 0
        if not comparison.is_same:
            compared_values = values[comparison.name]
            distinct = {id(domains[slot]): domains[slot] for slot in comparison.slots}
            keys = [_keys(domain, compared_values) for domain in distinct.values()]
            anchors = np.unique(np.concatenate(keys)) // len(np.unique(compared_values))
            possible &= np.bincount(anchors, minlength=anchor_count) >= len(comparison.slots)
    return possible


@dataclass(frozen=True, slots=True)
class Heads:
    """The possible heads of one same_subtree list, by anchor.

    Attributes:
        starts: Index of each anchor's first head, int64, shape (anchors + 1,).
        rows: Rows of heads, in canonical order within an anchor, int64, shape (heads,).
    """

    starts: Integers
    rows: Integers


def find_heads(
    domains: Sequence[Domain],
    members: Sequence[int],
    joint_constraints: Sequence[JointConstraint],
    anchor_count: int,
    order: TreeOrder,
) -> Heads:
    """Find the possible heads of a same_subtree list.

    The subtree of a head contains options of every slot of the list (`members`). By counting, these
    options have room for all competing slots.
    """
    distinct = {id(domains[slot]): domains[slot] for slot in members}
    anchors, rows = _merge_options(list(distinct.values()), order)
    viable = np.ones(len(rows), dtype=np.bool_)
    are_own = all(domain.is_local for domain in domains)
    inside = {}
    for number, domain in distinct.items():
        first, end = domain.options_below(anchors, rows, are_own=are_own)
        inside[number] = first, end
        viable &= end > first
    for constraint in joint_constraints:
        competing = {id(domains[slot]): domains[slot] for slot in constraint.slots}
        served_counts, units = np.zeros(len(rows)), np.zeros(len(rows))
        for number, domain in competing.items():
            served_counts += sum_ranges(slots_served(constraint, domain), *inside[number])
            if constraint.resource_class is not None:
                units += sum_ranges(domain.room[constraint.resource_class], *inside[number])
        viable &= served_counts >= len(constraint.slots)
        if constraint.resource_class is not None:
            viable &= units >= constraint.total
    anchors, rows = anchors[viable], rows[viable]
    return Heads(starts=search_ascending(anchors, np.arange(anchor_count + 1)), rows=rows)


def _merge_options(domains: Sequence[Domain], order: TreeOrder) -> tuple[Integers, Integers]:
    """Return the anchors and rows of all options, without duplicates."""
    keys = merge_rows([domain.keys for domain in domains])
    anchors = keys // order.span
    return anchors, order.rows_at(keys - anchors * order.span)
