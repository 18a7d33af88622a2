# SPDX-License-Identifier: Apache-2.0
"""Heads of same_subtree lists: which providers can be above all others of the list."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.slots import Amounts, Options, places_for
from treeclaim.forest.question.contests import Contest
from treeclaim.forest.table.columns import Rows, merged
from treeclaim.forest.table.order import TreeOrder


@dataclass(frozen=True, slots=True)
class Heads:
    """The possible heads of one same_subtree list, by anchor.

    Attributes:
        starts: Where each anchor's heads begin, int64, shape (anchors + 1,).
        places: Heads, ascending within an anchor, int64, shape (heads,).
    """

    starts: Rows
    places: Rows


def heads_of(
    options: Sequence[Options],
    members: Sequence[int],
    contests: Sequence[Contest],
    anchor_count: int,
    order: TreeOrder,
) -> Heads:
    """Find the options of any slot that may have all slots of the list in their subtree.

    That is, options of every slot are there, and where slots compete, the options there have
    room for all of them together, as far as counting shows.

    Args:
        options: The options of each slot of the request.
        members: The slots of the list.
        contests: Which slots of the list compete.
        anchor_count: Number of anchors.
        order: The canonical order.
    """
    distinct = {id(options[slot]): options[slot] for slot in members}
    anchors, places = _candidates(list(distinct.values()), order)
    behind = order.end[places]
    viable = np.ones(len(places), dtype=np.bool_)
    inside = {}
    for number, domain in distinct.items():
        first, end = domain.position(anchors, places), domain.position(anchors, behind)
        inside[number] = first, end
        viable &= end > first
    for contest in contests:
        competing = {id(options[slot]): options[slot] for slot in contest.slots}
        served, units = np.zeros(len(places)), np.zeros(len(places))
        for number, domain in competing.items():
            served += _sums(places_for(contest, domain), *inside[number])
            if contest.resource_class is not None:
                units += _sums(domain.room[contest.resource_class], *inside[number])
        viable &= served >= len(contest.slots)
        if contest.resource_class is not None:
            viable &= units >= contest.total
    anchors, places = anchors[viable], places[viable]
    return Heads(starts=anchors.searchsorted(np.arange(anchor_count + 1)), places=places)


def _candidates(options: Sequence[Options], order: TreeOrder) -> tuple[Rows, Rows]:
    """Return the anchor and the place of each option of any of some slots, none twice."""
    place_count = len(order.row)
    keys = merged([domain.keys for domain in options])
    anchors = keys // place_count
    return anchors, keys - anchors * place_count


def _sums(numbers: Amounts, first: Rows, end: Rows) -> npt.NDArray[np.float64]:
    """Return the sums of some ranges of numbers."""
    before = np.zeros(len(numbers) + 1)
    numbers.cumsum(out=before[1:], dtype=np.float64)
    sums: npt.NDArray[np.float64] = before[end] - before[first]
    return sums
