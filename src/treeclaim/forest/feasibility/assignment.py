# SPDX-License-Identifier: Apache-2.0
"""Assignment of takers to places that can serve several: augmenting paths.

The method is that of Kuhn ("The Hungarian method", 1955) for the unweighted case, with places of
multiplicity; a taker that finds no free place asks the takers of its options to move on.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget


def assignable(
    options: Sequence[Sequence[int]], capacity: Mapping[int, int], budget: Budget = UNBOUNDED
) -> bool:
    """Tell whether every taker can be given one of its options within the capacities.

    Args:
        options: Places that each taker can use.
        capacity: How many takers each place can serve; a place not named serves none.
        budget: What the question may cost.
    """
    if all(domain is options[0] for domain in options):
        # Takers that can use the same places fit if there are enough.
        return not options or sum(max(capacity.get(place, 0), 0) for place in options[0]) >= len(
            options
        )
    held: dict[int, int] = {}
    takers: dict[int, set[int]] = defaultdict(set)
    for taker in range(len(options)):
        path = _path_to_free_place(taker, options, capacity, takers, budget)
        if path is None:
            return False
        for item, place in path:
            if item in held:
                takers[held[item]].remove(item)
            takers[place].add(item)
            held[item] = place
    return True


def _path_to_free_place(
    taker: int,
    options: Sequence[Sequence[int]],
    capacity: Mapping[int, int],
    takers: Mapping[int, set[int]],
    budget: Budget,
) -> list[tuple[int, int]] | None:
    """Return the moves (taker, new place) that make room for one more; None if there are none.

    The moves are in the order in which they must be made.
    """
    came_from: dict[int, int] = {}
    moved_from: dict[int, int] = {}
    waiting = deque([taker])
    while waiting:
        budget.check()
        item = waiting.popleft()
        for place in options[item]:
            if place in came_from:
                continue
            came_from[place] = item
            if len(takers[place]) < capacity.get(place, 0):
                return _moves(place, taker, came_from, moved_from)
            for other in sorted(takers[place]):
                moved_from[other] = place
                waiting.append(other)
    return None


def _moves(
    place: int, taker: int, came_from: Mapping[int, int], moved_from: Mapping[int, int]
) -> list[tuple[int, int]]:
    moves = []
    while True:
        item = came_from[place]
        moves.append((item, place))
        if item == taker:
            return moves
        place = moved_from[item]
