# SPDX-License-Identifier: Apache-2.0
"""Whether takers of different sizes fit together into places: packing, judged exactly.

Where all slots ask for the same amount, assignment answers (see `assignment`). Slots of 2 and of 3
units on devices of 4 are another matter: each device has room for one, or for two of the small
ones, and counting units does not show it. That is bin packing, but there are few kinds of takers
in a request: what matters of a place is how many of each kind it serves. So the places are filled
one after the other, and what is remembered is only how many takers of each kind are left, in every
way that can be reached. Serving more never hurts, so a place is always filled up.

Many trees are alike: the answers are kept by what the question is made of, not by tree.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from treeclaim.forest.columns import Rows
from treeclaim.forest.plan import Contest, Want
from treeclaim.forest.slots import Options

_REMEMBERED = 4096
_MOST_WORK = 20_000
"""States times places; beyond it the question is left open."""


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
        self, wants: Sequence[Want], options: Sequence[Options], contests: Sequence[Contest]
    ) -> None:
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
        for slot in self._slots:
            self._note_options(anchor, slot, rooms, serves, list(counts))
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
        return packable(kinds, tuple(sorted(one for one in places if any(one.serves))))

    def _note_options(
        self,
        anchor: int,
        slot: int,
        rooms: dict[int, list[int]],
        serves: dict[int, list[bool]],
        kinds: Sequence[tuple[int, tuple[int, ...], bool]],
    ) -> None:
        """Note the room of a slot's options, and that they may serve slots of its kind."""
        options = self._options[slot]
        part = slice(int(options.starts[anchor]), int(options.starts[anchor + 1]))
        by_class = [
            options.room[name][part].tolist() if name in options.room else None
            for name in self._classes
        ]
        for at, place in enumerate(options.places[part].tolist()):
            room = rooms.setdefault(place, [0] * len(self._classes))
            for number, units in enumerate(by_class):
                if units is not None:
                    room[number] = units[at]
            if self._kind[slot] in kinds:
                serves[place][kinds.index(self._kind[slot])] = True


@lru_cache(_REMEMBERED)
def packable(kinds: tuple[Kind, ...], places: tuple[Place, ...]) -> bool:
    """Tell whether the places can serve all takers; True too where it is too much to find out."""
    if prod(kind.takers + 1 for kind in kinds) * len(places) > _MOST_WORK:
        return True
    nothing = (0,) * len(kinds)
    states = {tuple(kind.takers for kind in kinds)}
    for place in places:
        reached: set[tuple[int, ...]] = set()
        for left in states:
            for served in _fillings(kinds, place, left):
                reached.add(tuple(a - b for a, b in zip(left, served, strict=True)))
        if nothing in reached:
            return True
        states = reached
    return nothing in states


@lru_cache(_REMEMBERED)
def _fillings(
    kinds: tuple[Kind, ...], place: Place, left: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return how many of each kind a place can serve at a time, where none could be added."""
    found = list(_every_filling(kinds, place, left, 0, place.room, is_taken=False))
    return tuple(
        one
        for one in found
        if not any(
            other != one and all(a <= b for a, b in zip(one, other, strict=True))
            for other in found
        )
    )


def _every_filling(
    kinds: tuple[Kind, ...],
    place: Place,
    left: tuple[int, ...],
    at: int,
    room: tuple[int, ...],
    *,
    is_taken: bool,
) -> Iterator[tuple[int, ...]]:
    if at == len(kinds):
        yield ()
        return
    kind = kinds[at]
    most = left[at] if place.serves[at] else 0
    if kind.is_alone:
        most = min(most, 0 if is_taken else 1)
    for count in range(most + 1):
        rest = tuple(have - count * take for have, take in zip(room, kind.amounts, strict=True))
        if min(rest, default=0) < 0:
            return
        taken = is_taken or (kind.is_alone and count > 0)
        for more in _every_filling(kinds, place, left, at + 1, rest, is_taken=taken):
            yield (count, *more)
