# SPDX-License-Identifier: Apache-2.0
"""Heads of same_subtree lists: which providers can be above all others of the list."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.domain import Domain, range_sums, slots_served
from treeclaim.forest.question.slots import JointConstraint
from treeclaim.forest.table.columns import Integers, merge_rows, search_ascending
from treeclaim.forest.table.order import TreeOrder


@dataclass(frozen=True, slots=True)
class Heads:
    """The possible heads of one same_subtree list, by anchor.

    Attributes:
        starts: Where each anchor's heads begin, int64, shape (anchors + 1,).
        positions: Rows of heads, in canonical order within an anchor, int64, shape (heads,).
    """

    starts: Integers
    positions: Integers


def heads_of(
    domains: Sequence[Domain],
    members: Sequence[int],
    joint_constraints: Sequence[JointConstraint],
    anchor_count: int,
    order: TreeOrder,
) -> Heads:
    """Find the options of any slot that may have all slots of the list in their subtree.

    That is, options of every slot are there, and where slots compete, the options there have
    room for all of them together, as far as counting shows.

    Args:
        domains: The options of each slot of the request.
        members: The slots of the list.
        joint_constraints: Which slots of the list compete.
        anchor_count: Number of anchors.
        order: The canonical order.
    """
    distinct = {id(domains[slot]): domains[slot] for slot in members}
    anchors, positions = _candidates(list(distinct.values()), order)
    viable = np.ones(len(positions), dtype=np.bool_)
    are_own = all(domain.is_local for domain in domains)
    inside = {}
    for number, domain in distinct.items():
        first, end = domain.below(anchors, positions, are_own=are_own)
        inside[number] = first, end
        viable &= end > first
    for constraint in joint_constraints:
        competing = {id(domains[slot]): domains[slot] for slot in constraint.slots}
        served, units = np.zeros(len(positions)), np.zeros(len(positions))
        for number, domain in competing.items():
            served += range_sums(slots_served(constraint, domain), *inside[number])
            if constraint.resource_class is not None:
                units += range_sums(domain.room[constraint.resource_class], *inside[number])
        viable &= served >= len(constraint.slots)
        if constraint.resource_class is not None:
            viable &= units >= constraint.total
    anchors, positions = anchors[viable], positions[viable]
    return Heads(
        starts=search_ascending(anchors, np.arange(anchor_count + 1)), positions=positions
    )


def _candidates(domains: Sequence[Domain], order: TreeOrder) -> tuple[Integers, Integers]:
    """Return the anchor and the row of each option of any of some slots, none twice."""
    keys = merge_rows([domain.keys for domain in domains])
    anchors = keys // order.span
    return anchors, order.rows_at(keys - anchors * order.span)
