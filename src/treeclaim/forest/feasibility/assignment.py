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
        came_from, free_bin = _find_room(item, domains, capacity, contents, budget)
        if free_bin is None:
            return False
        while free_bin is not None:
            # An item that moves on leaves its bin to the one that asked for that.
            mover = came_from[free_bin]
            earlier_bin = bin_of.get(mover)
            if earlier_bin is not None:
                contents[earlier_bin].remove(mover)
            contents[free_bin].add(mover)
            bin_of[mover], free_bin = free_bin, earlier_bin
    return True


def _find_room(
    item: int,
    domains: Sequence[Sequence[int]],
    capacity: Mapping[int, int],
    contents: Mapping[int, set[int]],
    budget: Budget,
) -> tuple[Mapping[int, int], int | None]:
    """Return a bin with room that an item reaches if others move on, None if there is none.

    Returns:
        The item that asked first for each bin, and the bin.
    """
    came_from: dict[int, int] = {}
    waiting = deque([item])
    while waiting:
        budget.check()
        mover = waiting.popleft()
        for bin_ in domains[mover]:
            if bin_ not in came_from:
                came_from[bin_] = mover
                if len(contents[bin_]) < capacity.get(bin_, 0):
                    return came_from, bin_
                waiting.extend(contents[bin_])
    return came_from, None
