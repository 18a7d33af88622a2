# SPDX-License-Identifier: Apache-2.0
"""Heads of same_subtree lists: which providers can be above all others of the list."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.columns import Rows, merged
from treeclaim.forest.slots import Options


@dataclass(frozen=True, slots=True)
class Heads:
    """The possible heads of one same_subtree list, by anchor.

    Attributes:
        starts: Where each anchor's heads begin, int64, shape (anchors + 1,).
        places: Heads, ascending within an anchor, int64, shape (heads,).
    """

    starts: Rows
    places: Rows


def heads_of(members: Sequence[Options], anchor_count: int, ends: Rows) -> Heads:
    """Find the options of any slot that have options of every slot in their subtree.

    Args:
        members: The options of the slots of the list.
        anchor_count: Number of anchors.
        ends: First place behind each place's subtree, int64, shape (places,).
    """
    place_count = len(ends)
    keys = merged([one.keys for one in members])
    base = keys // place_count * place_count
    behind = base + ends[keys - base]
    viable = np.ones(len(keys), dtype=np.bool_)
    for one in members:
        viable &= np.searchsorted(one.keys, behind) > np.searchsorted(one.keys, keys)
    keys = keys[viable]
    anchors = keys // place_count
    return Heads(
        starts=np.searchsorted(anchors, np.arange(anchor_count + 1)),
        places=keys - anchors * place_count,
    )
