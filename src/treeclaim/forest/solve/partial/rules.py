# SPDX-License-Identifier: Apache-2.0
"""Rules between the providers of a candidate, as array operations over many partial candidates.

The rules are those of contract page 90, section 3.5, and the traits of the unsuffixed group
(section 3.2). `steps` determines the earlier slots that a step compares.

Slots may also meet at an inventory: one slot consumes it, and another consumes or uses it (page 102,
section 2). The options of a slot have room for its own use; the rules here add the uses of earlier slots.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.consumed import NO_CODE
from treeclaim.forest.domains.domain import Domain
from treeclaim.forest.domains.pairs import Window
from treeclaim.forest.question.steps import Step
from treeclaim.forest.solve.partial.blocks import Block
from treeclaim.forest.table.columns import Integers, Mask

_Positions = npt.NDArray[np.int64]

_AT_ONCE = 4_096
"""Partial candidates to compare together; each compares all pairs of two slots' uses."""

_UNEQUAL_CODE = NO_CODE - 1
"""A code that equals no other, not even `NO_CODE`."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The steps of a search and the data of their rules.

    Attributes:
        steps, lists, unsuffixed: As in `Plan`.
        required: For each set in `Plan.required`, the mask of providers with a trait of the set, shape (rows,).
        values: By name of a compared attribute, the number of the value of each row.
        roots: Row of the root by row.
        ends: One past the last row of the subtree by row.
        consuming: Slots that may use an inventory that one of them consumes; none, or at least two.
    """

    steps: tuple[Step, ...]
    lists: tuple[tuple[int, ...], ...]
    unsuffixed: tuple[int, ...]
    required: tuple[Mask, ...]
    values: Mapping[str, Integers]
    roots: Integers
    ends: Integers
    consuming: tuple[int, ...] = ()

    @property
    def are_independent(self) -> bool:
        """Return whether the slots can be chosen independently."""
        is_bound = bool(self.lists or self.required or self.consuming)
        is_bound = is_bound or any(step.is_bound for step in self.steps)
        return bool(self.steps) and not is_bound

    @property
    def slots(self) -> list[int]:
        """Return the slots in the order in which they are filled."""
        return [step.slot for step in self.steps if step.slot is not None]

    def at_most(self, counts: Callable[[int], Integers]) -> npt.NDArray[np.float64]:
        """Return an upper bound of each anchor's number of candidates, from the option counts of a slot."""
        most: npt.NDArray[np.float64] | float = 1.0
        equal_slots: dict[int | None, int] = {None: 0}
        for step in self.steps:
            if step.slot is None:
                continue
            # Slots without exchanges choose a set or a multiset of providers.
            earlier = equal_slots[step.not_before]
            equal_slots[step.slot] = earlier + 1
            added = -earlier if step.not_before in step.differs else earlier
            most = most * np.maximum(counts(step.slot) + added, 0) / (earlier + 1)
        return np.asarray(most)

    def with_room(
        self, step: Step, block: Block, window: Window, entry: Integers, domain: Domain
    ) -> Mask | None:
        """Return the mask of pairs (partial candidate, option) with room besides earlier slots; None for all.

        The work grows with the number of partial candidates, not of pairs: it looks up earlier choices
        among the options.
        """
        verdicts: list[Mask] = []
        if step.differs:
            _, pair = _claimed_pairs(step.differs, block, window, domain)
            has_room = np.ones(len(entry), dtype=np.bool_)
            has_room[pair] = False
            verdicts.append(has_room)
        for name, summed in step.summed.items():
            at, pair = _claimed_pairs(summed.slots, block, window, domain)
            if summed.is_uniform:
                claimed_units = np.bincount(pair, minlength=len(entry)) * summed.amounts[0]
            else:
                amounts = summed.amounts[at % len(summed.slots)]
                claimed_units = np.bincount(pair, amounts, minlength=len(entry))
            verdicts.append(claimed_units + summed.amount <= domain.room[name].take(entry))
        return _all_of(verdicts) if verdicts else None

    def allowed(self, step: Step, block: Block) -> Mask | None:
        """Return the mask of partial candidates that satisfy the rules of a step; None for all."""
        if step.slot is None:
            return self._covered_lists(step, block)
        verdicts: list[Mask] = []
        if step.not_before is not None:
            verdicts.append(
                block.chosen_rows[:, step.slot] >= block.chosen_rows[:, step.not_before]
            )
        if step.other_trees:
            rows = block.chosen_rows[:, [step.slot]]
            earlier_choices = block.chosen_rows[:, step.other_trees]
            is_apart = self.roots[earlier_choices] != self.roots[rows]
            verdicts.append(_all_in_row((earlier_choices == rows) | is_apart))
        if step.avoids:
            rows = block.chosen_rows[:, [step.slot]]
            verdicts.append(_all_in_row(~self._is_below(rows, block.heads[:, step.avoids])))
        for compared in step.compared:
            values = self.values[compared.name]
            slot_values = values[block.chosen_rows[:, [step.slot]]]
            is_equal = values[block.chosen_rows[:, compared.slots]] == slot_values
            verdicts.append(_all_in_row(is_equal if compared.is_same else ~is_equal))
        verdicts.extend(self._has_head(subtree, block) for subtree in step.completes)
        if step.completes_unsuffixed and self.required:
            group = block.chosen_rows[:, self.unsuffixed]
            verdicts.extend(_any_in_row(has[group]) for has in self.required)
        return _all_of(verdicts) if verdicts else None

    def _covered_lists(self, step: Step, block: Block) -> Mask | None:
        if not (step.covers or step.spares):
            return None
        head = block.heads[:, [step.subtree]]
        verdicts = [
            _all_in_row(self._is_below(block.chosen_rows[:, step.covers], head)),
            _all_in_row(~self._is_below(block.chosen_rows[:, step.spares], head)),
        ]
        verdicts.extend(self._has_head(subtree, block) for subtree in step.completes)
        return _all_of(verdicts)

    def _is_below(self, positions: _Positions, heads: _Positions) -> npt.NDArray[np.bool_]:
        below: npt.NDArray[np.bool_] = (positions >= heads) & (positions < self.ends[heads])
        return below

    def _has_head(self, subtree: int, block: Block) -> Mask:
        """Return the mask of partial candidates in which a slot of a list has the head as its provider."""
        head = block.heads[:, subtree]
        has: Mask = np.zeros(len(block), dtype=np.bool_)
        for slot in self.lists[subtree]:
            has |= block.chosen_rows[:, slot] == head
        return has


def _claimed_pairs(
    slots: tuple[int, ...], block: Block, window: Window, domain: Domain
) -> tuple[Integers, Integers]:
    """Return the pairs with an option that an earlier slot has taken; see `Window.pair_of`."""
    positions = block.chosen_rows.take(slots, axis=1)
    return window.pair_of(domain.find_options(block.anchor, positions))


def _all_in_row(truths: npt.NDArray[np.bool_]) -> Mask:
    are_all: Mask = np.logical_and.reduce(truths, axis=1)
    return are_all


def _any_in_row(truths: npt.NDArray[np.bool_]) -> Mask:
    is_any: Mask = np.logical_or.reduce(truths, axis=1)
    return is_any


def _all_of(verdicts: Sequence[Mask]) -> Mask:
    if len(verdicts) == 1:
        return verdicts[0]
    agreed: Mask = np.logical_and.reduce(verdicts)
    return agreed


def have_room(slot: int, earlier: Sequence[int], block: Block, domains: Sequence[Domain]) -> Mask:
    """Return the mask of partial candidates with room for the uses of the last slot and of `earlier` slots."""
    room: Mask = np.ones(len(block), dtype=np.bool_)
    entries = {
        number: domains[number].find_options(block.anchor, block.chosen_rows[:, [number]])[:, 0]
        for number in (slot, *earlier)
    }
    for start in range(0, len(block), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        part_entries = {number: entry[part] for number, entry in entries.items()}
        room[part] = _have_room(slot, part_entries, domains)
    return room


def _have_room(slot: int, entries: dict[int, Integers], domains: Sequence[Domain]) -> Mask:
    uses = domains[slot].uses
    if uses is None:
        return np.ones(len(entries[slot]), dtype=np.bool_)
    codes = uses.codes[entries[slot]]
    used_units = uses.amounts[entries[slot]]
    for number, entry in entries.items():
        other_uses = domains[number].uses
        if number == slot or other_uses is None:
            continue
        other_codes = np.where(other_uses.codes == NO_CODE, _UNEQUAL_CODE, other_uses.codes)[entry]
        is_equal = codes[:, :, None] == other_codes[:, None, :]
        used_units += (is_equal * other_uses.amounts[entry][:, None, :]).sum(axis=2)
    fits: Mask = ((used_units <= uses.free_units[entries[slot]]) | (codes == NO_CODE)).all(axis=1)
    return fits
