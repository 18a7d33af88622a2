# SPDX-License-Identifier: Apache-2.0
"""Whether items of different sizes fit together into bins: packing, judged exactly.

Where all slots ask for the same amount, assignment answers (`packing.py`). Slots of 2 and of 3
units on devices of 4 are another matter: each device has room for one, or for two of the small
ones, and counting units does not show it. That is bin packing, but there are few kinds of items
in a request: all that matters about a bin is how many of each kind it serves. So the bins are filled
one after the other, and only how many items of each kind are left is remembered, in every
way that can be reached, as a boolean array. Serving more never hurts, so a bin is always
filled up.

Proving that nothing fits is hard, and mostly something does. So a greedy pass comes first: it puts
the largest items where they fit best (`greedy`). If it serves all of them, that is a proof.

Many trees are alike, so verdicts are cached by the rooms and amounts, not by tree.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.bounds.cache import ByteCache

_VERDICT_BYTES = 4_000_000
"""Bytes of verdicts, some 4,000: as many kinds of trees as a cloud may have."""

_States = npt.NDArray[np.bool_]

_Filling = tuple[int, ...]
"""How many of each kind a bin serves at a time."""


class Kind(NamedTuple):
    """Items that are alike.

    Attributes:
        items: How many there are.
        amounts: What each takes, by number of the class.
        is_alone: Whether at most one such item, of whatever kind, may be in a bin.
    """

    items: int
    amounts: tuple[int, ...]
    is_alone: bool


class Bin(NamedTuple):
    """A bin that serves items.

    Attributes:
        room: What it has, by number of the class.
        serves: For each kind whether it may serve it.
    """

    room: tuple[int, ...]
    serves: tuple[bool, ...]


_verdicts = ByteCache(_VERDICT_BYTES)
"""What was found out, by a digest of the question."""


def packable(kinds: tuple[Kind, ...], bins: tuple[Bin, ...], budget: Budget = UNBOUNDED) -> bool:
    """Tell whether the bins can serve all items; True too where it is too much to find out.

    Where it is much, items that are nearly alike are first taken for alike, each as wanting what
    the smallest of them wants. What does not fit then does not fit at all.
    """
    question = blake2b(repr((kinds, bins)).encode(), digest_size=16).digest()
    return bool(_verdicts.get(question, lambda: np.bool_(_judged(kinds, bins, budget))))


def _judged(kinds: tuple[Kind, ...], bins: tuple[Bin, ...], budget: Budget) -> bool:
    if greedy(kinds, bins, budget):
        return True
    for most_states in thresholds.MOST_PACKING_STATES:
        coarse, merged_bins = _merged(kinds, bins, most_states)
        states = prod(kind.items + 1 for kind in coarse)
        fillings = _all_fillings(
            coarse, merged_bins, thresholds.MOST_PACKING_WORK // states, budget
        )
        if fillings is not None:
            return _can_serve(coarse, fillings, budget)
    return True


def greedy(kinds: Sequence[Kind], bins: Sequence[Bin], budget: Budget = UNBOUNDED) -> bool:
    """Tell whether all items find a bin, the largest first, each where it leaves least room.

    If not, that proves nothing.
    """
    if not bins:
        return False
    room = np.array([bin_.room for bin_ in bins], dtype=np.int64)
    serves = np.array([bin_.serves for bin_ in bins], dtype=np.bool_)
    is_taken = np.zeros(len(bins), dtype=np.bool_)
    choices = serves.sum(axis=0).tolist()
    order = sorted(
        range(len(kinds)),
        key=lambda number: (choices[number], [-n for n in kinds[number].amounts]),
    )
    by_size = sorted(order, key=lambda number: [-n for n in kinds[number].amounts])
    return any(
        _greedily_served(
            [kinds[kind] for kind in some], serves[:, some], room.copy(), is_taken.copy(), budget
        )
        for some in (by_size, order)
    )


def _greedily_served(
    kinds: Sequence[Kind],
    serves: npt.NDArray[np.bool_],
    room: npt.NDArray[np.int64],
    is_taken: npt.NDArray[np.bool_],
    budget: Budget,
) -> bool:
    """Serve items in the order of their kinds; `room` and `is_taken` change meanwhile."""
    for number, kind in enumerate(kinds):
        amounts = np.array(kind.amounts, dtype=np.int64)
        for _ in range(kind.items):
            budget.check()
            # What is not asked for may be overdrawn.
            fits = serves[:, number] & ((room >= amounts) | (amounts == 0)).all(axis=1)
            if kind.is_alone:
                fits &= ~is_taken
            which = np.flatnonzero(fits)
            if not len(which):
                return False
            best = which[room[which].sum(axis=1).argmin()]
            room[best] -= amounts
            is_taken[best] |= kind.is_alone
    return True


def _all_fillings(
    kinds: tuple[Kind, ...], bins: Sequence[Bin], most: int, budget: Budget
) -> list[tuple[_Filling, ...]] | None:
    """Return the fillings of each bin; None if these, or the different ones, are too many."""
    known: dict[Bin, tuple[_Filling, ...]] = {}
    left = thresholds.MOST_FILLINGS
    fillings = []
    for bin_ in bins:
        budget.check()
        if bin_ not in known:
            full = _full(kinds, bin_, 0, bin_.room, is_taken=False)
            known[bin_] = tuple(islice(full, left + 1))
            left -= len(known[bin_])
        most -= len(known[bin_])
        if left < 0 or most < 0:
            return None
        fillings.append(known[bin_])
    return fillings


def _can_serve(
    kinds: Sequence[Kind], fillings: Sequence[Sequence[_Filling]], budget: Budget
) -> bool:
    """Fill one bin after the other, in all ways; see the module's description."""
    shape = tuple(kind.items + 1 for kind in kinds)
    # One truth for each way in which items of each kind may be left.
    states = np.zeros(shape, dtype=np.bool_)
    states[tuple(kind.items for kind in kinds)] = True
    nobody = (0,) * len(kinds)
    for choices in fillings:
        reached = np.zeros(shape, dtype=np.bool_)
        for filling in choices:
            budget.check()
            reached |= _served(states, filling)
        if reached[nobody]:
            return True
        states = reached
    return False


def _served(states: _States, filling: _Filling) -> _States:
    """Return what is left of each kind after a bin served some; there may be fewer left."""
    for axis, count in enumerate(filling):
        if count:
            # The axis comes first, and goes back to where it was.
            before = np.moveaxis(states, axis, 0)
            after = np.zeros(before.shape, dtype=np.bool_)
            after[0] = np.logical_or.reduce(before[: count + 1], axis=0)
            after[1 : len(before) - count] = before[count + 1 :]
            states = np.moveaxis(after, 0, axis)
    return states


def _merged(
    kinds: tuple[Kind, ...], bins: tuple[Bin, ...], most_states: int
) -> tuple[tuple[Kind, ...], tuple[Bin, ...]]:
    """Take kinds together until there are few enough ways in which items may be left."""
    groups: list[tuple[Kind, tuple[int, ...]]] = [
        (kind, (number,)) for number, kind in enumerate(kinds)
    ]
    groups.sort(
        key=lambda kind_and_numbers: (kind_and_numbers[0].is_alone, kind_and_numbers[0].amounts)
    )
    while len(groups) > 1 and prod(kind.items + 1 for kind, _ in groups) > most_states:
        at = min(
            range(len(groups) - 1),
            key=lambda number: _loss(groups[number][0], groups[number + 1][0]),
        )
        (first, numbers), (other, more) = groups[at : at + 2]
        least = tuple(map(min, first.amounts, other.amounts))
        kind = Kind(first.items + other.items, least, first.is_alone and other.is_alone)
        groups[at : at + 2] = [(kind, (*numbers, *more))]
    merged = tuple(
        Bin(
            bin_.room,
            tuple(any(bin_.serves[number] for number in numbers) for _, numbers in groups),
        )
        for bin_ in bins
    )
    return tuple(kind for kind, _ in groups), merged


def _loss(first: Kind, other: Kind) -> int:
    """Return how many units are overlooked by taking two kinds for one, roughly."""
    lost = 0
    for mine, theirs in zip(first.amounts, other.amounts, strict=True):
        lost += (first.items if mine > theirs else other.items) * abs(mine - theirs)
    return lost


def _full(
    kinds: tuple[Kind, ...], bin_: Bin, at: int, room: tuple[int, ...], *, is_taken: bool
) -> Iterator[_Filling]:
    if at == len(kinds):
        yield ()
        return
    # How many of each kind a bin can serve at a time, where none of the last could be added.
    kind = kinds[at]
    most = kind.items if bin_.serves[at] else 0
    if kind.is_alone:
        most = min(most, 0 if is_taken else 1)
    for have, take in zip(room, kind.amounts, strict=True):
        if take:
            most = min(most, max(have, 0) // take)
    # The last kind takes what is left: less would not be full.
    for count in range(most if at == len(kinds) - 1 else 0, most + 1):
        rest = tuple(have - count * take for have, take in zip(room, kind.amounts, strict=True))
        taken = is_taken or (kind.is_alone and count > 0)
        for more in _full(kinds, bin_, at + 1, rest, is_taken=taken):
            yield (count, *more)
