# SPDX-License-Identifier: Apache-2.0
"""Checks whether items can be assigned to bins of limited capacity.

Augmenting paths, by the method of Kuhn ("The Hungarian method", 1955) for the unweighted case, with bins of
some capacity: an item that finds no room asks the items in the bins of its domain to move on.
"""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget


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
            for moved_item in sorted(contents[bin_]):
                moved_from[moved_item] = bin_
                waiting.append(moved_item)
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
