# SPDX-License-Identifier: Apache-2.0
"""Whether items fit into bins: as many as each bin holds, or by their amounts.

Where bins hold some number of items, whatever these are, it is a question of assignment: augmenting paths,
by the method of Kuhn ("The Hungarian method", 1955) for the unweighted case, with bins of some capacity. An
item that finds no room asks the items in the bins of its domain to move on. Slots of different amounts are
packed into the providers under an anchor (`bin_packing.py`).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.domain import Domain
from treeclaim.forest.feasibility.bin_packing import Bin, Kind, packable
from treeclaim.forest.question.slots import JointConstraint, Slot
from treeclaim.forest.table.columns import Integers


def assignable(
    domains: Sequence[Sequence[int]], capacity: Mapping[int, int], budget: Budget = UNBOUNDED
) -> bool:
    """Tell whether every item can be put into a bin of its domain within the capacities.

    Args:
        domains: The bins that each item can use.
        capacity: How many items each bin holds; a bin that is not named holds none.
        budget: What the search may cost.
    """
    if all(domain is domains[0] for domain in domains):
        # Items that can use the same bins fit if there is room enough.
        return not domains or sum(max(capacity.get(bin_, 0), 0) for bin_ in domains[0]) >= len(
            domains
        )
    bin_of: dict[int, int] = {}
    contents: dict[int, set[int]] = defaultdict(set)
    for item in range(len(domains)):
        path = _path_to_room(item, domains, capacity, contents, budget)
        if path is None:
            return False
        for moved, bin_ in path:
            if moved in bin_of:
                contents[bin_of[moved]].remove(moved)
            contents[bin_].add(moved)
            bin_of[moved] = bin_
    return True


def _path_to_room(
    item: int,
    domains: Sequence[Sequence[int]],
    capacity: Mapping[int, int],
    contents: Mapping[int, set[int]],
    budget: Budget,
) -> list[tuple[int, int]] | None:
    """Return the moves (item, new bin) that make room for one more item; None if there are none.

    The moves are in the order in which they must be made.
    """
    came_from: dict[int, int] = {}
    moved_from: dict[int, int] = {}
    waiting = deque([item])
    while waiting:
        budget.check()
        mover = waiting.popleft()
        for bin_ in domains[mover]:
            if bin_ in came_from:
                continue
            came_from[bin_] = mover
            if len(contents[bin_]) < capacity.get(bin_, 0):
                return _moves(bin_, item, came_from, moved_from)
            for other in sorted(contents[bin_]):
                moved_from[other] = bin_
                waiting.append(other)
    return None


def _moves(
    bin_: int, item: int, came_from: Mapping[int, int], moved_from: Mapping[int, int]
) -> list[tuple[int, int]]:
    moves = []
    while True:
        mover = came_from[bin_]
        moves.append((mover, bin_))
        if mover == item:
            return moves
        bin_ = moved_from[mover]


class Packing:
    """Asks, for the slots of a request, whether they can be packed under an anchor."""

    def __init__(
        self,
        slots: Sequence[Slot],
        domains: Sequence[Domain],
        joint_constraints: Sequence[JointConstraint],
        budget: Budget,
    ) -> None:
        self._budget = budget
        self._domains = domains
        self._classes = [
            constraint.resource_class
            for constraint in joint_constraints
            if constraint.resource_class is not None
        ]
        alone = {
            slot
            for constraint in joint_constraints
            if constraint.resource_class is None
            for slot in constraint.slots
        }
        self._amounts = [
            tuple(slot.resources.get(name, 0) for name in self._classes) for slot in slots
        ]
        self._kind = [
            (id(domains[slot]), amounts, slot in alone)
            for slot, amounts in enumerate(self._amounts)
        ]
        self._joint_slots = sorted(
            {slot for constraint in joint_constraints for slot in constraint.slots}
        )
        # With one class and one amount assignment has said everything.
        self._is_needed = len({self._amounts[slot] for slot in self._joint_slots}) > 1

    def may_complete(self, anchor: int, chosen: Integers, left: Sequence[int]) -> bool:
        """Judge whether the slots that are left can all be served after some choices.

        Args:
            anchor: Index of the anchor.
            chosen: Position by slot, int64, shape (slots,); those of `left` have no meaning.
            left: Slots that are not filled yet.
        """
        waiting = [slot for slot in self._joint_slots if slot in set(left)]
        if not self._is_needed or not waiting:
            return True
        counts = Counter(self._kind[slot] for slot in waiting)
        kinds = tuple(Kind(count, kind[1], kind[2]) for kind, count in counts.items())
        rooms: dict[int, list[int]] = {}
        serves: dict[int, list[bool]] = defaultdict(lambda: [False] * len(kinds))
        numbers = {kind: number for number, kind in enumerate(counts)}
        noted = set()
        for slot in self._joint_slots:
            if self._kind[slot] not in noted:
                noted.add(self._kind[slot])
                self._budget.check()
                self._note_domain(anchor, slot, rooms, serves, numbers)
        filled = [slot for slot in self._joint_slots if slot not in waiting]
        for slot in filled:
            room = rooms[int(chosen[slot])]
            for number, amount in enumerate(self._amounts[slot]):
                room[number] -= amount
        busy = {int(chosen[slot]) for slot in filled if self._kind[slot][2]}
        bins = [
            Bin(
                tuple(room),
                tuple(
                    may and not (kind.is_alone and position in busy)
                    for may, kind in zip(serves[position], kinds, strict=True)
                ),
            )
            for position, room in rooms.items()
        ]
        useful = tuple(sorted(bin_ for bin_ in bins if any(bin_.serves)))
        return packable(kinds, useful, self._budget)

    def _note_domain(
        self,
        anchor: int,
        slot: int,
        rooms: dict[int, list[int]],
        serves: dict[int, list[bool]],
        kinds: Mapping[tuple[int, tuple[int, ...], bool], int],
    ) -> None:
        """Note the room of the providers of a domain, and that they may serve slots of its kind."""
        domain = self._domains[slot]
        part = slice(int(domain.starts[anchor]), int(domain.starts[anchor + 1]))
        by_class = [
            domain.room[name][part].tolist() if name in domain.room else None
            for name in self._classes
        ]
        kind = kinds.get(self._kind[slot])
        for at, position in enumerate(domain.positions[part].tolist()):
            room = rooms.setdefault(position, [0] * len(self._classes))
            for number, units in enumerate(by_class):
                if units is not None:
                    room[number] = units[at]
            if kind is not None:
                serves[position][kind] = True
