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
from collections.abc import Collection, Iterator, Mapping, Sequence

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


def can_assign(
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

        The slots of same_subtree `lists` do not count as combinations, because a head leaves them few options.
        `possible` is the mask of the anchors that the values of attributes permit; None for all.
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
            mask &= self._have_room(constraint, anchor_count)
        return np.flatnonzero(mask)

    def _have_room(self, constraint: JointConstraint, anchor_count: int) -> Mask:
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
        served_counts = np.concatenate(
            [slots_served(constraint, domain) for domain in distinct_domains]
        )[first]
        mask &= np.bincount(anchors, served_counts, minlength=anchor_count) >= len(
            constraint.slots
        )
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
        is_possible = np.ones(len(anchors), dtype=np.bool_)
        indices = np.flatnonzero(combinations > np.log(SOME_COMBINATIONS))
        verdicts: dict[bytes, bool] = {}
        no_choices, all_slots = np.full(len(self._slots), -1), range(len(self._slots))
        for index, key in self._verdict_keys(anchors, indices):
            if key not in verdicts:
                self._budget.check()
                verdicts[key] = self.can_complete(int(anchors[index]), no_choices, all_slots)
            is_possible[index] = verdicts[key]
        is_alone = (combinations > np.log(MANY_COMBINATIONS))[is_possible]
        cuts = np.flatnonzero(is_alone[1:] | is_alone[:-1]) + 1
        yield from (run for run in np.split(anchors[is_possible], cuts) if len(run))

    def _verdict_keys(self, anchors: Integers, indices: Integers) -> Iterator[tuple[int, bytes]]:
        """Yield indices of anchors with a key that is equal for trees with the same verdict.

        Anchors with equal numbers of options are serialized together, as rows of a matrix.
        """
        counts = np.array([domain.counts[anchors[indices]] for domain in self._joint_domains])
        sizes, size_numbers = np.unique(counts, axis=1, return_inverse=True)
        for number, widths in enumerate(sizes.T.tolist()):
            self._budget.check()
            members = indices[size_numbers == number]
            first = self._joint_domains[0].starts[anchors[members]]
            base = self._joint_domains[0].rows[first]
            columns = []
            for domain, width in zip(self._joint_domains, widths, strict=True):
                options = domain.starts[anchors[members]][:, None] + np.arange(width)
                columns.append(domain.rows[options] - base[:, None])
                columns += [room[options] for room in domain.room.values()]
            rows = np.concatenate(columns, axis=1)
            prefix = number.to_bytes(4, "little")
            for index, row in zip(members.tolist(), rows, strict=True):
                yield index, prefix + row.tobytes()

    def can_complete(
        self, anchor: int, chosen_rows: Integers, open_slots: Collection[int]
    ) -> bool:
        """Return whether the open slots can all be served beside the choices for the other slots.

        `chosen_rows` has rows of providers by slot, int64, shape (slots,); they are undefined for open slots.
        """
        return all(
            can_assign(
                *self._assignment(constraint, anchor, chosen_rows, open_slots), self._budget
            )
            for constraint in self._joint_constraints
        )

    def _assignment(
        self,
        constraint: JointConstraint,
        anchor: int,
        chosen_rows: Integers,
        open_slots: Collection[int],
    ) -> tuple[list[list[int]], Mapping[int, int]]:
        """Return the options of each open slot, and the number of slots that each provider can serve."""
        name = constraint.resource_class
        room: dict[int, int] = {}
        options_by_domain: dict[int, list[int]] = {}
        options_by_slot = []
        for slot in constraint.slots:
            domain = self._domains[slot]
            if id(domain) not in options_by_domain:
                part = slice(domain.starts[anchor], domain.starts[anchor + 1])
                options = options_by_domain[id(domain)] = domain.rows[part].tolist()
                units = slots_served(constraint, domain) if name is None else domain.room[name]
                room.update(zip(options, units[part].tolist(), strict=True))
            if slot in open_slots:
                options_by_slot.append(options_by_domain[id(domain)])
        for slot in constraint.slots:
            if slot not in open_slots:
                row = int(chosen_rows[slot])
                amount = 1 if name is None else self._slots[slot].resources[name]
                room[row] = room.get(row, 0) - amount
        return options_by_slot, {row: units // constraint.least for row, units in room.items()}
