# SPDX-License-Identifier: Apache-2.0
"""Checks whether all slots that compete for the same providers can be served.

Slots compete in two ways:

- Under `isolate`, each suffixed group needs a different provider.
- Slots that request the same class share the free units.

Both are assignment problems with capacities (Hall's marriage theorem, with multiplicities). Counting
excludes trees with a few array operations for all of them: the options of all competitors together
must have enough room. Augmenting paths (Kuhn, "The Hungarian method", 1955) decide exactly, but only
for trees with too many combinations to try.

A provider's room is a multiple of the smallest requested amount. All checks are necessary conditions:
the search still applies all rules to the remaining trees.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.domain import Domain, slots_served
from treeclaim.forest.question.slots import JointConstraint, Slot
from treeclaim.forest.table.columns import Integers, Mask
from treeclaim.forest.table.order import TreeOrder

SOME_COMBINATIONS = 500
"""Combinations above which a tree is checked exactly before a search of several trees."""

MANY_COMBINATIONS = 20_000
"""Combinations above which a tree is checked exactly and then searched alone."""


def assignable(
    domains: Sequence[Sequence[int]], capacity: Mapping[int, int], budget: Budget = UNBOUNDED
) -> bool:
    """Return whether every item fits into a bin of its domain; bins without a capacity hold no item."""
    if all(domain is domains[0] for domain in domains):
        # Items with the same bins fit if the total room is sufficient.
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
            # The displaced item moves on, and its bin passes to the item that displaced it.
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
    """Find a bin with room that an item reaches by displacing others (breadth-first).

    Returns the item that first tried each bin, and the found bin or None.
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


class JointFeasibility:
    """Checks whether anchors and partial candidates can serve all competing slots."""

    def __init__(
        self,
        slots: Sequence[Slot],
        domains: Sequence[Domain],
        joint_constraints: Sequence[JointConstraint],
        lists: Sequence[Sequence[int]],
        order: TreeOrder,
        *,
        budget: Budget,
        possible: Mask | None = None,
    ) -> None:
        """Prepare the checks for the anchors of a stage.

        Args:
            slots: All slots of the request.
            domains: The domain of each slot.
            joint_constraints: The competing slots.
            lists: Slots of each same_subtree list. They do not count as combinations, because the head of
                a list leaves them few options.
            order: The canonical order of trees.
            budget: The budget of the search.
            possible: Mask of the anchors that the values of attributes permit; None for all.
        """
        self._budget = budget
        self._possible = possible
        self._slots = slots
        self._loose = sorted(set(range(len(slots))).difference(*lists))
        concerned = [slot for constraint in joint_constraints for slot in constraint.slots]
        distinct = {id(domains[slot]): domains[slot] for slot in concerned}
        self._joint_domains = list(distinct.values())
        self._domains = domains
        self._joint_constraints = joint_constraints
        self._order = order

    def possible_anchors(self, anchor_count: int) -> Integers:
        """Return the indices of the anchors that counting does not exclude, ascending."""
        mask = np.ones(anchor_count, dtype=np.bool_)
        if self._possible is not None:
            mask &= self._possible
        for constraint in self._joint_constraints:
            self._budget.check()
            mask &= self._enough(constraint, anchor_count)
        return np.flatnonzero(mask)

    def _enough(self, constraint: JointConstraint, anchor_count: int) -> Mask:
        distinct: dict[int, list[int]] = {}
        for slot in constraint.slots:
            distinct.setdefault(id(self._domains[slot]), []).append(slot)
        mask = np.ones(anchor_count, dtype=np.bool_)
        for members in distinct.values():
            domain = self._domains[members[0]]
            mask &= domain.sums(slots_served(constraint, domain)) >= len(members)
        distinct_domains = [self._domains[members[0]] for members in distinct.values()]
        keys, first = np.unique(
            np.concatenate([domain.keys for domain in distinct_domains]), return_index=True
        )
        anchors = keys // self._order.span
        served = np.concatenate([slots_served(constraint, domain) for domain in distinct_domains])[
            first
        ]
        mask &= np.bincount(anchors, served, minlength=anchor_count) >= len(constraint.slots)
        if constraint.resource_class is not None:
            rooms = [domain.room[constraint.resource_class] for domain in distinct_domains]
            room = np.concatenate(rooms)[first].astype(np.float64)
            mask &= np.bincount(anchors, room, minlength=anchor_count) >= constraint.total
        return mask

    def runs(self, anchors: Integers) -> Iterator[Integers]:
        """Split anchors into runs: anchors with many combinations alone, the others together.

        Exact checks exclude further anchors.
        """
        if not self._joint_domains:
            yield anchors
            return
        combinations = np.zeros(len(anchors))
        # A slot has no options if consumers that are not written yet took all room.
        with np.errstate(divide="ignore"):
            for slot in self._loose:
                combinations += np.log(self._domains[slot].counts[anchors])
        hopeful = np.ones(len(anchors), dtype=np.bool_)
        many = np.flatnonzero(combinations > np.log(SOME_COMBINATIONS))
        judged: dict[bytes, bool] = {}
        nothing, every = np.full(len(self._slots), -1), range(len(self._slots))
        for at, likeness in self._likenesses(anchors, many):
            if likeness not in judged:
                self._budget.check()
                judged[likeness] = self.may_complete(int(anchors[at]), nothing, every)
            hopeful[at] = judged[likeness]
        alone = (combinations > np.log(MANY_COMBINATIONS))[hopeful]
        cuts = np.flatnonzero(alone[1:] | alone[:-1]) + 1
        yield from (run for run in np.split(anchors[hopeful], cuts) if len(run))

    def _likenesses(self, anchors: Integers, which: Integers) -> Iterator[tuple[int, bytes]]:
        """Yield positions of anchors with a key that is equal for trees with the same verdict.

        `which` has the positions to yield. Anchors with equal numbers of options are serialized together,
        as rows of a matrix.
        """
        counts = np.array([domain.counts[anchors[which]] for domain in self._joint_domains])
        sizes, group = np.unique(counts, axis=1, return_inverse=True)
        for number, widths in enumerate(sizes.T.tolist()):
            self._budget.check()
            group_members = which[group == number]
            first = self._joint_domains[0].starts[anchors[group_members]]
            base = self._joint_domains[0].positions[first]
            columns = []
            for domain, width in zip(self._joint_domains, widths, strict=True):
                part = domain.starts[anchors[group_members]][:, None] + np.arange(width)
                columns.append(domain.positions[part] - base[:, None])
                columns += [room[part] for room in domain.room.values()]
            rows = np.concatenate(columns, axis=1)
            prefix = number.to_bytes(4, "little")
            for at, row in zip(group_members.tolist(), rows, strict=True):
                yield at, prefix + row.tobytes()

    def may_complete(self, anchor: int, chosen: Integers, left: Sequence[int]) -> bool:
        """Return whether the open slots can all be served beside the choices for the other slots.

        `chosen` has rows of providers by slot, int64, shape (slots,); they are undefined for open slots.
        """
        open_slots = set(left)
        return all(
            assignable(*self._assignment(constraint, anchor, chosen, open_slots), self._budget)
            for constraint in self._joint_constraints
        )

    def _assignment(
        self,
        constraint: JointConstraint,
        anchor: int,
        chosen: Integers,
        open_slots: set[int],
    ) -> tuple[list[list[int]], Mapping[int, int]]:
        """Return the options of each open slot, and how many slots each position can serve."""
        room: dict[int, int] = {}
        lists: dict[int, list[int]] = {}
        options_by_slot = []
        for slot in constraint.slots:
            domain = self._domains[slot]
            if id(domain) not in lists:
                part = slice(domain.starts[anchor], domain.starts[anchor + 1])
                lists[id(domain)] = domain.positions[part].tolist()
                units = (
                    slots_served(constraint, domain)
                    if constraint.resource_class is None
                    else domain.room[constraint.resource_class]
                )
                room.update(zip(lists[id(domain)], units[part].tolist(), strict=True))
            if slot in open_slots:
                options_by_slot.append(lists[id(domain)])
        for slot in constraint.slots:
            if slot not in open_slots:
                position = int(chosen[slot])
                room[position] = room.get(position, 0) - self._take(constraint, slot)
        return options_by_slot, {
            position: units // constraint.least for position, units in room.items()
        }

    def _take(self, constraint: JointConstraint, slot: int) -> int:
        if constraint.resource_class is None:
            return 1
        return self._slots[slot].resources[constraint.resource_class]
