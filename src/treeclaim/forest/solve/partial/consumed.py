# SPDX-License-Identifier: Apache-2.0
"""Whether there is room for all that the slots of partial candidates use together, consumed or not.

The slots of a candidate may meet at an inventory: two that consume of it, or one that consumes of it and
one that takes it (contract page 102, section 2). A slot's own use is judged where its options are found;
here what earlier slots use is added, each time a slot is filled.
"""

from collections.abc import Sequence

import numpy as np

from treeclaim.forest.domains.consumed import NO_CODE
from treeclaim.forest.domains.domain import Domain
from treeclaim.forest.solve.partial.blocks import Block
from treeclaim.forest.table.columns import Integers, Mask

_AT_ONCE = 4_096
"""Partial candidates that are judged together: each is compared in all pairs of what two slots use."""

_NOT_THERE = NO_CODE - 1
"""Equal to no code, that of no inventory included."""


def have_room(slot: int, earlier: Sequence[int], block: Block, domains: Sequence[Domain]) -> Mask:
    """Tell which partial candidates have room for what a slot uses besides earlier ones.

    Args:
        slot: Which was filled last.
        earlier: Slots that were filled before and use something that others may use.
        block: Partial candidates.
        domains: Of all slots.
    """
    room: Mask = np.ones(len(block), dtype=np.bool_)
    entries = {
        number: domains[number].entry_of(block.anchor, block.chosen[:, [number]])[:, 0]
        for number in (slot, *earlier)
    }
    for start in range(0, len(block), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        some = {number: entry[part] for number, entry in entries.items()}
        room[part] = _have_room(slot, some, domains)
    return room


def _have_room(slot: int, entries: dict[int, Integers], domains: Sequence[Domain]) -> Mask:
    mine = domains[slot].uses
    if mine is None:
        return np.ones(len(entries[slot]), dtype=np.bool_)
    codes = mine.codes[entries[slot]]
    used = mine.amounts[entries[slot]]
    for number, entry in entries.items():
        other = domains[number].uses
        if number == slot or other is None:
            continue
        theirs = np.where(other.codes == NO_CODE, _NOT_THERE, other.codes)[entry]
        is_same = codes[:, :, None] == theirs[:, None, :]
        used += (is_same * other.amounts[entry][:, None, :]).sum(axis=2)
    fits: Mask = ((used <= mine.free[entries[slot]]) | (codes == NO_CODE)).all(axis=1)
    return fits
