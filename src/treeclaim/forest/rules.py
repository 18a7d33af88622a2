# SPDX-License-Identifier: Apache-2.0
"""What must hold between the providers of a candidate, judged as soon as it can be.

Every rule of contract page 90, section 3.5, and the traits of the unsuffixed group (section 3.2),
as an array operation over many partial candidates. Which earlier slots a step has to look at is
worked out once for a request, in `plan_steps`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from treeclaim.forest.columns import Mask, Rows
from treeclaim.forest.slots import Amounts, Options, Slot
from treeclaim.forest.windows import Window
from treeclaim.model.request import NO_GROUP

_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Summed:
    """Earlier slots that may take the same class from the same provider.

    Attributes:
        amount: What this step's slot takes.
        slots: The earlier slots.
        amounts: What each takes, int64, shape (k,).
    """

    amount: int
    slots: tuple[int, ...]
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the search: guess the head of a same_subtree list, or fill a slot.

    Attributes:
        slot: The slot to fill; None to guess a head.
        subtree: The list whose head is guessed; -1 where a slot is filled.
        covers: Where a head is guessed: earlier slots that must lie in its subtree.
        within: The lists that the slot is named in.
        completes: Those of them whose last slot this is.
        differs: Earlier slots whose provider must be another one.
        summed: By class name: earlier slots whose amounts add up with this one's.
        other_trees: Earlier slots that must be the same provider or in another tree (below 1.29).
        completes_unsuffixed: True if it fills the last slot of the unsuffixed group.
    """

    slot: int | None
    subtree: int = -1
    covers: tuple[int, ...] = ()
    within: tuple[int, ...] = ()
    completes: tuple[int, ...] = ()
    differs: tuple[int, ...] = ()
    summed: Mapping[str, Summed] = field(default_factory=dict)
    other_trees: tuple[int, ...] = ()
    completes_unsuffixed: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The steps of a search and what it needs to judge them.

    Attributes:
        steps: In order.
        lists: Slots of each same_subtree list.
        unsuffixed: Slots of the unsuffixed group.
        required: For each set of required traits of the unsuffixed group that its providers
            must cover together: who has one of them, shape (places,).
        roots: Place of the root by place.
        ends: First place behind the subtree by place.
    """

    steps: tuple[Step, ...]
    lists: tuple[tuple[int, ...], ...]
    unsuffixed: tuple[int, ...]
    required: tuple[Mask, ...]
    roots: Rows
    ends: Rows

    def subtree_keys(self, anchors: Rows, heads: Rows) -> tuple[Rows, Rows]:
        """Return the keys (see `Options.keys`) where the heads' subtrees begin and end."""
        base = anchors * len(self.ends)
        return base + heads, base + self.ends[heads]

    def with_room(
        self, step: Step, anchors: Rows, chosen: _Places, window: Window, options: Options
    ) -> Mask | None:
        """Tell which pairs of a partial candidate and an option respect earlier claims on it.

        What earlier slots took is looked up among the options and marked there, so the work grows
        with the partial candidates, not with the pairs.

        Args:
            step: The step whose slot is to be filled.
            anchors: Index of each partial candidate's anchor, shape (n,).
            chosen: Places, shape (n, slots).
            window: The options of each partial candidate.
            options: The slot's options.

        Returns:
            One truth value per pair; None if all may stay.
        """
        verdicts: list[Mask] = []
        if step.differs:
            _, pair = self._claimed(step.differs, anchors, chosen, window, options)
            free = np.ones(window.size, dtype=np.bool_)
            free[pair] = False
            verdicts.append(free)
        for name, summed in step.summed.items():
            at, pair = self._claimed(summed.slots, anchors, chosen, window, options)
            amounts = summed.amounts[at % len(summed.slots)]
            taken = np.bincount(pair, amounts, minlength=window.size)
            _, option = window.pairs()
            verdicts.append(taken + summed.amount <= options.room[name][option])
        return _all_of(verdicts) if verdicts else None

    def _claimed(
        self,
        slots: tuple[int, ...],
        anchors: Rows,
        chosen: _Places,
        window: Window,
        options: Options,
    ) -> tuple[Rows, Rows]:
        """Find the pairs whose option some earlier slots took; see `Window.pair_of`."""
        keys = anchors[:, None] * len(self.ends) + chosen[:, slots]
        option = np.searchsorted(options.keys, keys)
        option[options.keys[np.minimum(option, len(options.keys) - 1)] != keys] = -1
        return window.pair_of(option)

    def allowed(self, step: Step, chosen: _Places, heads: _Places) -> Mask | None:
        """Tell which partial candidates may stay after a step; None for all.

        Args:
            step: The step that was done.
            chosen: Places, shape (n, slots).
            heads: Places, shape (n, lists).
        """
        if step.slot is None:
            return self._covered(step, chosen, heads)
        new = chosen[:, [step.slot]]
        verdicts: list[Mask] = []
        if step.other_trees:
            others = chosen[:, step.other_trees]
            apart = self.roots[others] != self.roots[new]
            verdicts.append(_each((others == new) | apart))
        verdicts.extend(self._has_head(subtree, chosen, heads) for subtree in step.completes)
        if step.completes_unsuffixed:
            group = chosen[:, self.unsuffixed]
            verdicts.extend(_some(has[group]) for has in self.required)
        return _all_of(verdicts) if verdicts else None

    def _covered(self, step: Step, chosen: _Places, heads: _Places) -> Mask | None:
        if not step.covers:
            return None
        head = heads[:, [step.subtree]]
        covered = chosen[:, step.covers]
        verdicts = [_each((covered >= head) & (covered < self.ends[head]))]
        verdicts.extend(self._has_head(subtree, chosen, heads) for subtree in step.completes)
        return _all_of(verdicts)

    def _has_head(self, subtree: int, chosen: _Places, heads: _Places) -> Mask:
        members = chosen[:, self.lists[subtree]]
        return _some(members == heads[:, [subtree]])


def _each(truths: npt.NDArray[np.bool_]) -> Mask:
    """Tell for each row whether all its values are true."""
    each: Mask = np.logical_and.reduce(truths, axis=1)
    return each


def _some(truths: npt.NDArray[np.bool_]) -> Mask:
    """Tell for each row whether any of its values is true."""
    some: Mask = np.logical_or.reduce(truths, axis=1)
    return some


def _all_of(verdicts: Sequence[Mask]) -> Mask:
    agreed: Mask = np.logical_and.reduce(verdicts)
    return agreed


def plan_steps(
    slots: Sequence[Slot],
    lists: Sequence[tuple[int, ...]],
    *,
    isolate: bool,
    nested: bool,
) -> tuple[Step, ...]:
    """Put heads and slots into an order that prunes early, with what each step must look at.

    Each head comes before those slots of its list that are not filled yet; the slots that are in
    no list come last. Among slots that could come next, those with fewest options are first.
    """
    planner = _Planner(slots, lists, isolate=isolate, nested=nested)
    for subtree in range(len(lists)):
        planner.guess_head(subtree)
        planner.fill(lists[subtree])
    planner.fill(range(len(slots)))
    return tuple(planner.steps)


class _Planner:
    """Appends steps; knows what is filled and guessed so far."""

    def __init__(
        self,
        slots: Sequence[Slot],
        lists: Sequence[tuple[int, ...]],
        *,
        isolate: bool,
        nested: bool,
    ) -> None:
        self.steps: list[Step] = []
        self._slots = slots
        self._lists = lists
        self._isolate = isolate
        self._nested = nested
        self._filled: list[int] = []
        self._guessed: list[int] = []
        self._unsuffixed = {one for one, slot in enumerate(slots) if slot.suffix == NO_GROUP}

    def guess_head(self, subtree: int) -> None:
        members = self._lists[subtree]
        self._guessed.append(subtree)
        self.steps.append(
            Step(
                slot=None,
                subtree=subtree,
                covers=tuple(one for one in members if one in self._filled),
                completes=(subtree,) if set(members) <= set(self._filled) else (),
            )
        )

    def fill(self, slots: Iterable[int]) -> None:
        unfilled = [one for one in slots if one not in self._filled]
        for one in sorted(
            unfilled, key=lambda slot: (len(self._slots[slot].relation.provider), slot)
        ):
            earlier = tuple(self._filled)
            self._filled.append(one)
            self.steps.append(self._step(one, earlier))

    def _step(self, new: int, earlier: tuple[int, ...]) -> Step:
        slot = self._slots[new]
        differs = tuple(one for one in earlier if self._isolated(new, one))
        return Step(
            slot=new,
            within=tuple(one for one in self._guessed if new in self._lists[one]),
            completes=self._completed_by((new,)),
            differs=differs,
            summed=self._summed(slot, [one for one in earlier if one not in differs]),
            other_trees=tuple(
                one
                for one in earlier
                if not self._nested and slot.resources and self._slots[one].resources
            ),
            completes_unsuffixed=(
                new in self._unsuffixed and self._unsuffixed <= set(self._filled)
            ),
        )

    def _completed_by(self, new: Sequence[int]) -> tuple[int, ...]:
        """Return the guessed lists that are whole now, and were not before these slots."""
        filled = set(self._filled)
        return tuple(
            one
            for one in self._guessed
            if set(self._lists[one]) <= filled and set(self._lists[one]) & set(new)
        )

    def _isolated(self, one: int, other: int) -> bool:
        suffixes = (self._slots[one].suffix, self._slots[other].suffix)
        return self._isolate and NO_GROUP not in suffixes

    def _summed(self, slot: Slot, earlier: Sequence[int]) -> dict[str, Summed]:
        summed = {}
        for name, amount in slot.resources.items():
            others = [one for one in earlier if name in self._slots[one].resources]
            amounts = [self._slots[one].resources[name] for one in others]
            if others:
                summed[name] = Summed(
                    amount,
                    tuple(others),
                    np.array(amounts, dtype=np.int64),
                )
        return summed
