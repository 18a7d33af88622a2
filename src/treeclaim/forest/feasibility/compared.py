# SPDX-License-Identifier: Apache-2.0
"""Checks whether slots that are compared by attributes can all be served (contract page 102, section 1).

Where all slots must have the same value, an option counts only if all of them can have its value, as far
as counting shows. Where each slot must have another value, there must be as many values as slots.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.domain import Domain, slots_served
from treeclaim.forest.question.slots import JointConstraint, SlotComparison
from treeclaim.forest.table.columns import Integers, Mask


def narrow_by_values(
    domains: Sequence[Domain],
    compared: Sequence[SlotComparison],
    joint_constraints: Sequence[JointConstraint],
    values: Mapping[str, Integers],
    budget: Budget,
) -> list[Domain]:
    """Return domains without the options whose value not all slots can have that must have it.

    Args:
        domains: The domains of all slots; equal slots share one, before and afterwards.
        compared: Which slots are compared.
        joint_constraints: Which slots compete.
        values: Numbers of values by row, by the names of the attributes.
        budget: What the search may cost.
    """
    narrowed = list(domains)
    for listed in compared:
        if not listed.is_same:
            continue
        budget.check()
        distinct = {id(narrowed[slot]): narrowed[slot] for slot in listed.slots}
        of_options = {
            number: _keys(domain, values[listed.name]) for number, domain in distinct.items()
        }
        keys = list(of_options.values())
        for constraint in joint_constraints:
            members = [slot for slot in constraint.slots if slot in listed.slots]
            if len(members) > 1:
                keys.append(_keys_with_room(constraint, members, narrowed, values[listed.name]))
        common = reduce(np.intersect1d, keys)
        kept = {
            number: domain.kept(np.isin(of_options[number], common))
            for number, domain in distinct.items()
        }
        for slot in listed.slots:
            narrowed[slot] = kept[id(narrowed[slot])]
    return narrowed


def _keys(domain: Domain, values: Integers) -> Integers:
    """Return for each option a number that stands for its anchor and its value."""
    distinct_values, number = np.unique(values, return_inverse=True)
    anchors = np.arange(len(domain.starts) - 1).repeat(domain.counts)
    keys: Integers = anchors * len(distinct_values) + number[domain.positions]
    return keys


def _keys_with_room(
    constraint: JointConstraint,
    members: Sequence[int],
    domains: Sequence[Domain],
    values: Integers,
) -> Integers:
    """Return the keys whose options serve enough slots together."""
    distinct = list({id(domains[slot]): domains[slot] for slot in members}.values())
    _, first = np.unique(np.concatenate([domain.keys for domain in distinct]), return_index=True)
    keys = np.concatenate([_keys(domain, values) for domain in distinct])[first]
    served = np.concatenate([slots_served(constraint, domain) for domain in distinct])[first]
    distinct_keys, number = np.unique(keys, return_inverse=True)
    return distinct_keys[np.bincount(number, served, minlength=len(distinct_keys)) >= len(members)]


def with_enough_values(
    domains: Sequence[Domain],
    compared: Sequence[SlotComparison],
    values: Mapping[str, Integers],
    anchor_count: int,
    budget: Budget,
) -> Mask:
    """Return the anchors under which compared slots have options, and values enough to differ."""
    possible = np.ones(anchor_count, dtype=np.bool_)
    for listed in compared:
        budget.check()
        for slot in listed.slots:
            possible &= domains[slot].counts > 0
        if not listed.is_same:
            distinct = {id(domains[slot]): domains[slot] for slot in listed.slots}
            keys = [_keys(domain, values[listed.name]) for domain in distinct.values()]
            anchors = np.unique(np.concatenate(keys)) // len(np.unique(values[listed.name]))
            possible &= np.bincount(anchors, minlength=anchor_count) >= len(listed.slots)
    return possible
