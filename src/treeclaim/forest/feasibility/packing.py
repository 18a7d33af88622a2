# SPDX-License-Identifier: Apache-2.0
"""Whether takers of different sizes fit together into places: packing, judged exactly.

Where all slots ask for the same amount, assignment answers (see `assignment`). Slots of 2 and of 3
units on devices of 4 are another matter: each device has room for one, or for two of the small
ones, and counting units does not show it. That is bin packing, but there are few kinds of takers
in a request: what matters of a place is how many of each kind it serves. So the places are filled
one after the other, and what is remembered is only how many takers of each kind are left, in every
way that can be reached, as an array of truths. Serving more never hurts, so a place is always
filled up.

Proving that nothing fits is the hard part; mostly something does. So before that, the largest takers
are put one after the other where they fit best (`greedy`), and if all are served that is a proof.

Many trees are alike: the answers are kept by what the question is made of, not by tree.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.bounds.memory import Memory
from treeclaim.forest.domains.slots import Options
from treeclaim.forest.question.contests import Contest
from treeclaim.forest.question.wants import Want
from treeclaim.forest.table.columns import Rows

_REMEMBERED_BYTES = 4_000_000
"""Of verdicts, some 4,000: as many kinds of trees as a cloud may have."""

_States = npt.NDArray[np.bool_]

_Filling = tuple[int, ...]
"""How many of each kind a place serves at a time."""


class Kind(NamedTuple):
    """Takers that are alike.

    Attributes:
        takers: How many there are.
        amounts: What each takes, by number of the class.
        is_alone: Whether at most one such taker, of whatever kind, may be in a place.
    """

    takers: int
    amounts: tuple[int, ...]
    is_alone: bool


class Place(NamedTuple):
    """A place that serves takers.

    Attributes:
        room: What it has, by number of the class.
        serves: For each kind whether it may serve it.
    """

    room: tuple[int, ...]
    serves: tuple[bool, ...]


class Packing:
    """Asks, for the slots of a request, whether they can be packed under an anchor."""

    def __init__(
        self,
        wants: Sequence[Want],
        options: Sequence[Options],
        contests: Sequence[Contest],
        budget: Budget,
    ) -> None:
        self._budget = budget
        self._options = options
        self._classes = [one.resource_class for one in contests if one.resource_class is not None]
        alone = {slot for one in contests if one.resource_class is None for slot in one.slots}
        self._amounts = [
            tuple(want.resources.get(name, 0) for name in self._classes) for want in wants
        ]
        self._kind = [
            (id(options[slot]), amounts, slot in alone)
            for slot, amounts in enumerate(self._amounts)
        ]
        self._slots = sorted({slot for one in contests for slot in one.slots})
        # With one class and one amount assignment has said everything.
        self._is_needed = len({self._amounts[slot] for slot in self._slots}) > 1

    def may_complete(self, anchor: int, chosen: Rows, left: Sequence[int]) -> bool:
        """Judge whether the slots that are left can all be served after some choices.

        Args:
            anchor: Index of the anchor.
            chosen: Place by slot, int64, shape (slots,); those of `left` have no meaning.
            left: Slots that are not filled yet.
        """
        waiting = [slot for slot in self._slots if slot in set(left)]
        if not self._is_needed or not waiting:
            return True
        counts = Counter(self._kind[slot] for slot in waiting)
        kinds = tuple(Kind(count, one[1], one[2]) for one, count in counts.items())
        rooms: dict[int, list[int]] = {}
        serves: dict[int, list[bool]] = defaultdict(lambda: [False] * len(kinds))
        numbers = {kind: number for number, kind in enumerate(counts)}
        noted = set()
        for slot in self._slots:
            if self._kind[slot] not in noted:
                noted.add(self._kind[slot])
                self._budget.check()
                self._note_options(anchor, slot, rooms, serves, numbers)
        filled = [slot for slot in self._slots if slot not in waiting]
        for slot in filled:
            room = rooms[int(chosen[slot])]
            for number, amount in enumerate(self._amounts[slot]):
                room[number] -= amount
        busy = {int(chosen[slot]) for slot in filled if self._kind[slot][2]}
        places = [
            Place(
                tuple(room),
                tuple(
                    may and not (kind.is_alone and place in busy)
                    for may, kind in zip(serves[place], kinds, strict=True)
                ),
            )
            for place, room in rooms.items()
        ]
        served = tuple(sorted(one for one in places if any(one.serves)))
        return packable(kinds, served, self._budget)

    def _note_options(
        self,
        anchor: int,
        slot: int,
        rooms: dict[int, list[int]],
        serves: dict[int, list[bool]],
        kinds: Mapping[tuple[int, tuple[int, ...], bool], int],
    ) -> None:
        """Note the room of a slot's options, and that they may serve slots of its kind."""
        options = self._options[slot]
        part = slice(int(options.starts[anchor]), int(options.starts[anchor + 1]))
        by_class = [
            options.room[name][part].tolist() if name in options.room else None
            for name in self._classes
        ]
        kind = kinds.get(self._kind[slot])
        for at, place in enumerate(options.places[part].tolist()):
            room = rooms.setdefault(place, [0] * len(self._classes))
            for number, units in enumerate(by_class):
                if units is not None:
                    room[number] = units[at]
            if kind is not None:
                serves[place][kind] = True


_verdicts = Memory(_REMEMBERED_BYTES)
"""What was found out, by a digest of the question."""


def packable(
    kinds: tuple[Kind, ...], places: tuple[Place, ...], budget: Budget = UNBOUNDED
) -> bool:
    """Tell whether the places can serve all takers; True too where it is too much to find out.

    Where it is much, takers that are nearly alike are first taken for alike, each as wanting what
    the smallest of them wants. What does not fit then does not fit at all.
    """
    question = blake2b(repr((kinds, places)).encode(), digest_size=16).digest()
    return bool(_verdicts.get(question, lambda: np.bool_(_judged(kinds, places, budget))))


def _judged(kinds: tuple[Kind, ...], places: tuple[Place, ...], budget: Budget) -> bool:
    if greedy(kinds, places, budget):
        return True
    for most_states in thresholds.MOST_PACKING_STATES:
        coarse, merged_places = _merged(kinds, places, most_states)
        states = prod(one.takers + 1 for one in coarse)
        fillings = _all_fillings(
            coarse, merged_places, thresholds.MOST_PACKING_WORK // states, budget
        )
        if fillings is not None:
            return _can_serve(coarse, fillings, budget)
    return True


def greedy(kinds: Sequence[Kind], places: Sequence[Place], budget: Budget = UNBOUNDED) -> bool:
    """Tell whether all takers find a place, the largest first, each where it leaves least room.

    If not, that proves nothing.
    """
    if not places:
        return False
    room = np.array([one.room for one in places], dtype=np.int64)
    serves = np.array([one.serves for one in places], dtype=np.bool_)
    is_taken = np.zeros(len(places), dtype=np.bool_)
    choices = serves.sum(axis=0).tolist()
    order = sorted(
        range(len(kinds)), key=lambda one: (choices[one], [-n for n in kinds[one].amounts])
    )
    by_size = sorted(order, key=lambda one: [-n for n in kinds[one].amounts])
    return any(
        _greedily_served(
            [kinds[one] for one in some], serves[:, some], room.copy(), is_taken.copy(), budget
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
    """Serve takers in the order of their kinds; `room` and `is_taken` change meanwhile."""
    for number, kind in enumerate(kinds):
        amounts = np.array(kind.amounts, dtype=np.int64)
        for _ in range(kind.takers):
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
    kinds: tuple[Kind, ...], places: Sequence[Place], most: int, budget: Budget
) -> list[tuple[_Filling, ...]] | None:
    """Return the fillings of each place; None if these, or the different ones, are too many."""
    known: dict[Place, tuple[_Filling, ...]] = {}
    left = thresholds.MOST_FILLINGS
    fillings = []
    for place in places:
        budget.check()
        if place not in known:
            full = _full(kinds, place, 0, place.room, is_taken=False)
            known[place] = tuple(islice(full, left + 1))
            left -= len(known[place])
        most -= len(known[place])
        if left < 0 or most < 0:
            return None
        fillings.append(known[place])
    return fillings


def _can_serve(
    kinds: Sequence[Kind], fillings: Sequence[Sequence[_Filling]], budget: Budget
) -> bool:
    """Fill one place after the other, in all ways; see the module's description."""
    shape = tuple(kind.takers + 1 for kind in kinds)
    # One truth for each way in which takers of each kind may be left.
    states = np.zeros(shape, dtype=np.bool_)
    states[tuple(kind.takers for kind in kinds)] = True
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
    """Return what is left of each kind after a place served some; there may be fewer left."""
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
    kinds: tuple[Kind, ...], places: tuple[Place, ...], most_states: int
) -> tuple[tuple[Kind, ...], tuple[Place, ...]]:
    """Take kinds together until there are few enough ways in which takers may be left."""
    groups: list[tuple[Kind, tuple[int, ...]]] = [
        (kind, (number,)) for number, kind in enumerate(kinds)
    ]
    groups.sort(key=lambda one: (one[0].is_alone, one[0].amounts))
    while len(groups) > 1 and prod(kind.takers + 1 for kind, _ in groups) > most_states:
        at = min(range(len(groups) - 1), key=lambda one: _loss(groups[one][0], groups[one + 1][0]))
        (one, numbers), (other, more) = groups[at : at + 2]
        least = tuple(map(min, one.amounts, other.amounts))
        kind = Kind(one.takers + other.takers, least, one.is_alone and other.is_alone)
        groups[at : at + 2] = [(kind, (*numbers, *more))]
    merged = tuple(
        Place(
            place.room, tuple(any(place.serves[one] for one in numbers) for _, numbers in groups)
        )
        for place in places
    )
    return tuple(kind for kind, _ in groups), merged


def _loss(one: Kind, other: Kind) -> int:
    """Return how many units are overlooked by taking two kinds for one, roughly."""
    lost = 0
    for mine, theirs in zip(one.amounts, other.amounts, strict=True):
        lost += (one.takers if mine > theirs else other.takers) * abs(mine - theirs)
    return lost


def _full(
    kinds: tuple[Kind, ...], place: Place, at: int, room: tuple[int, ...], *, is_taken: bool
) -> Iterator[_Filling]:
    if at == len(kinds):
        yield ()
        return
    # How many of each kind a place can serve at a time, where none of the last could be added.
    kind = kinds[at]
    most = kind.takers if place.serves[at] else 0
    if kind.is_alone:
        most = min(most, 0 if is_taken else 1)
    for have, take in zip(room, kind.amounts, strict=True):
        if take:
            most = min(most, max(have, 0) // take)
    # The last kind takes what is left: less would not be full.
    for count in range(most if at == len(kinds) - 1 else 0, most + 1):
        rest = tuple(have - count * take for have, take in zip(room, kind.amounts, strict=True))
        taken = is_taken or (kind.is_alone and count > 0)
        for more in _full(kinds, place, at + 1, rest, is_taken=taken):
            yield (count, *more)
