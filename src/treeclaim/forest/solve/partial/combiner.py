# SPDX-License-Identifier: Apache-2.0
"""Combines the options of slots into candidates: a depth-first search with blocks of partial candidates.

A candidate is an anchor and one provider for each slot. The search fills one slot after the other, as
a database joins tables:

- It joins a block of partial candidates (rows of a matrix) with the next slot's options under the same
  anchor. Rules (isolation, summed amounts, subtrees, traits) remove rows as soon as they can be checked.
- If the join exceeds the block size, only the first rows are joined, and the remaining rows wait on a stack.

The search is therefore lazy and needs little memory. It searches many small trees together with a few
array operations. The order of candidates does not depend on the block size.

The providers of a same_subtree list have a unique head, the ancestor of all others. The search guesses
the head as if it were a slot. Each slot of the list then has only the options in the head's subtree, an
interval of rows. In the end, one of the slots must have the head as its provider.

Backtracking may extend a partial candidate that cannot be completed. `feasibility` detects this for the
resources for which groups compete: for each tree with very many combinations, and for each partial
candidate after many dead ends.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.domain import Domain
from treeclaim.forest.domains.pairs import Window
from treeclaim.forest.feasibility.joint_feasibility import JointFeasibility
from treeclaim.forest.feasibility.narrowing import Heads
from treeclaim.forest.solve.partial.blocks import Anchored, Block, Stack, most_rows
from treeclaim.forest.solve.partial.rules import Rules, have_room
from treeclaim.forest.table.columns import Integers, Mask, search_ascending

LARGEST_FRUITLESS_BLOCK = 65_536
"""Most partial candidates to extend together after dead ends."""

PATIENCE = 64
"""Dead ends after which the search checks whether partial candidates can be completed."""


class Combiner:
    """Combines the options of all slots under the rules of a request."""

    def __init__(
        self,
        domains: Sequence[Domain],
        heads: Sequence[Heads],
        rules: Rules,
        joint_feasibility: JointFeasibility,
        budget: Budget,
    ) -> None:
        self._domains = domains
        self._are_own = all(domain.is_local for domain in domains)
        self._heads = heads
        self._rules = rules
        self._joint_feasibility = joint_feasibility
        self._budget = budget

    def blocks(self, anchors: Integers, size: int) -> Iterator[Anchored]:
        """Yield the candidates of anchors (indices, ascending); extend `size` partial candidates together."""
        if not len(anchors):
            return
        if self._rules.are_independent:
            yield from self._products(anchors, size)
            return
        for run in self._joint_feasibility.runs(anchors):
            yield from self._search(run, size)

    def at_most(self, anchors: Integers) -> npt.NDArray[np.float64]:
        """Return an upper bound of each anchor's number of candidates, float64, shape (anchors,)."""
        most = self._rules.at_most(lambda slot: self._domains[slot].counts[anchors])
        return np.broadcast_to(most, anchors.shape)

    def at_least(self, anchor: int) -> float:
        """Return a lower bound of an anchor's number of candidates; 0 if it is unknown.

        If slots only need different providers or share room, each filled slot removes at most one
        option of a later slot.
        """
        rules = self._rules
        if rules.lists or rules.required or rules.consuming:
            return 0.0
        least = 1.0
        for step in rules.steps:
            is_bound = step.other_trees or step.avoids or step.compared
            if step.slot is None or is_bound or step.not_before is not None:
                return 0.0
            rivals = {
                *step.differs,
                *(rival_slot for each in step.summed.values() for rival_slot in each.slots),
            }
            least *= max(int(self._domains[step.slot].counts[anchor]) - len(rivals), 0)
        return least

    def matching(self, anchors: Integers, size: int, kinds: Integers | None = None) -> Integers:
        """Return the anchors (indices, ascending) with a candidate.

        `kinds` has equal numbers for anchors with equivalent candidates; None if all may differ.
        """
        if not len(anchors) or self._rules.are_independent:
            return anchors
        if kinds is None:
            kinds = np.arange(len(anchors))
        _, first, kind_numbers = np.unique(kinds, return_index=True, return_inverse=True)
        is_matched = np.zeros(int(anchors[-1]) + 1, dtype=np.bool_)
        for block in self.first_of_each(anchors[np.sort(first)], size):
            is_matched[block.anchor] = True
        matching: Integers = anchors[is_matched[anchors[first]][kind_numbers]]
        return matching

    def first_of_each(self, anchors: Integers, size: int) -> Iterator[Anchored]:
        """Yield the first candidate of each anchor (indices, ascending) that has one."""
        if not len(anchors):
            return
        if self._rules.are_independent:
            chosen_rows = np.empty((len(anchors), len(self._domains)), dtype=np.int64)
            for slot, domain in enumerate(self._domains):
                chosen_rows[:, slot] = domain.rows[domain.starts[anchors]]
            yield Anchored(anchors, chosen_rows)
            return
        is_matched = np.zeros(int(anchors[-1]) + 1, dtype=np.bool_)
        for run in self._joint_feasibility.runs(anchors):
            for block in self._search(run, size, lambda block: is_matched[block.anchor]):
                _, first = np.unique(block.anchor, return_index=True)
                first = first[~is_matched[block.anchor[first]]]
                is_matched[block.anchor[first]] = True
                yield Anchored(block.anchor[first], block.chosen_rows[first])

    def _products(self, anchors: Integers, size: int) -> Iterator[Anchored]:
        """Combine slots without rules between them: every combination is a candidate."""
        counts = np.array([self._domains[slot].counts[anchors] for slot in self._rules.slots])
        sizes = np.multiply.reduce(counts, axis=0, dtype=np.float64)
        start = 0
        while start < len(anchors):
            self._budget.check()
            remaining_sizes = sizes[start:]
            if remaining_sizes[0] > size:
                yield from self._search(anchors[start : start + 1], size)
                start += 1
                continue
            end = start + max(
                int(search_ascending(remaining_sizes.cumsum(), size, side="right")), 1
            )
            yield self._product(anchors[start:end], counts[:, start:end], sizes[start:end])
            start = end

    def _product(
        self, anchors: Integers, counts: npt.NDArray[np.int64], sizes: npt.NDArray[np.float64]
    ) -> Anchored:
        """Return all combinations of some anchors: the n-th combination is n in mixed radix.

        `counts` are the options of each step, shape (steps, anchors); `sizes` are their products.
        """
        counts_of_anchors = sizes.astype(np.int64)
        row, number = Window(np.zeros_like(counts_of_anchors), counts_of_anchors).pairs()
        chosen_rows = np.empty((len(row), len(counts)), dtype=np.int64)
        is_single = len(row) == len(anchors)  # No anchor has less than one choice.
        for slot, count in zip(self._rules.slots[::-1], counts[::-1], strict=True):
            domain = self._domains[slot]
            first = domain.starts[anchors]
            if not is_single:
                number, digit = np.divmod(number, count[row])
                first = first[row] + digit
            chosen_rows[:, slot] = domain.rows[first]
        return Anchored(anchors[row], chosen_rows)

    def _search(
        self, anchors: Integers, size: int, is_finished: Callable[[Block], Mask] | None = None
    ) -> Iterator[Anchored]:
        stack = Stack(self._budget)
        stack.push(0, Block.empty(anchors, len(self._domains), len(self._heads)))
        try:
            yield from self._deepen(stack, size, is_finished)
        finally:
            stack.clear()

    def _deepen(
        self, stack: Stack, size: int, is_finished: Callable[[Block], Mask] | None
    ) -> Iterator[Anchored]:
        """Yield the candidates of the blocks on a stack, without anchors that `is_finished` excludes."""
        surviving_share = 1.0
        dead_ends = 0
        while stack:
            self._budget.check()
            depth, block = stack.pop()
            if is_finished is not None:
                block = block.take(np.flatnonzero(~is_finished(block)))
                if not len(block):
                    continue
            if depth == len(self._rules.steps):
                dead_ends = 0
                yield Anchored(block.anchor, block.chosen_rows)
                continue
            window = self._window(depth, block)
            # The rules are expected to remove the same share of pairs as in the previous step.
            rows = window.rows_within(size / surviving_share)
            if rows < len(block):
                stack.push(depth, block.part(slice(rows, None)))
                block, window = block.part(slice(rows)), window.first_rows(rows)
            grown = self._grow(depth, block, window)
            surviving_share = max(len(grown), 1) / max(window.size, 1)
            if dead_ends > PATIENCE:
                grown = grown.take(np.flatnonzero(self._completable(depth + 1, grown)))
            if len(grown):
                stack.push(depth + 1, grown)
            else:
                dead_ends += 1
                # The block has led to no candidate: extend more rows together.
                size = min(2 * size, most_rows(len(self._domains), LARGEST_FRUITLESS_BLOCK))

    def extended(self, depth: int, block: Block) -> Block:
        """Return partial candidates extended by the step with a number, in order."""
        self._budget.check()
        return self._grow(depth, block, self._window(depth, block))

    def _window(self, depth: int, block: Block) -> Window:
        step = self._rules.steps[depth]
        if step.slot is None:
            starts = self._heads[step.subtree].starts
            first = starts[block.anchor]
            return Window(first, starts[block.anchor + 1] - first)
        domain = self._domains[step.slot]
        first, end = domain.starts[block.anchor], domain.starts[block.anchor + 1]
        for subtree in step.within:
            heads = block.heads[:, subtree]
            first_below, end_below = domain.options_below(
                block.anchor, heads, are_own=self._are_own
            )
            first, end = np.maximum(first, first_below), np.minimum(end, end_below)
        return Window(first, np.maximum(end - first, 0))

    def _grow(self, depth: int, block: Block, window: Window) -> Block:
        """Join a block with the options in its window, and apply the rules of the step."""
        step = self._rules.steps[depth]
        row, entry = window.pairs()
        if step.slot is None:
            positions = self._heads[step.subtree].rows.take(entry)
            grown = block.headed(row, step.subtree, positions)
        else:
            domain = self._domains[step.slot]
            has_room = self._rules.with_room(step, block, window, entry, domain)
            if has_room is not None:
                kept_pairs = np.flatnonzero(has_room)
                row, entry = row.take(kept_pairs), entry.take(kept_pairs)
            grown = block.filled(row, step.slot, domain.rows.take(entry))
        allowed = self._rules.allowed(step, grown)
        if allowed is not None and not allowed.all():
            grown = grown.take(np.flatnonzero(allowed))
        return self._with_room_for_consumed(depth, grown) if self._rules.consuming else grown

    def _with_room_for_consumed(self, depth: int, block: Block) -> Block:
        """Remove the partial candidates that exceed the room of a consumed inventory."""
        consuming, filled = self._rules.consuming, self._rules.steps[:depth]
        earlier = [
            step.slot for step in filled if step.slot is not None and step.slot in consuming
        ]
        slot = self._rules.steps[depth].slot
        if slot is None or slot not in consuming or not earlier or not len(block):
            return block
        room = have_room(slot, earlier, block, self._domains)
        return block if room.all() else block.take(np.flatnonzero(room))

    def _completable(self, depth: int, block: Block) -> Mask:
        open_slots = {step.slot for step in self._rules.steps[depth:] if step.slot is not None}
        verdicts = np.empty(len(block), dtype=np.bool_)
        for row, (anchor, chosen_rows) in enumerate(
            zip(block.anchor, block.chosen_rows, strict=True)
        ):
            self._budget.check()
            verdicts[row] = self._joint_feasibility.can_complete(
                int(anchor), chosen_rows, open_slots
            )
        return verdicts
