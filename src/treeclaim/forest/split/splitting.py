# SPDX-License-Identifier: Apache-2.0
"""Candidates in which several providers give one amount (contract page 97, section 2).

The slots that take one provider each are filled first, by the usual problem. To each combination
that it finds, the minimal viable sets of the split classes are then added: only now is it known
what the other groups leave of each provider.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from treeclaim.forest.domains.consumed import have_room_together
from treeclaim.forest.domains.filters import with_any_trait
from treeclaim.forest.solve.anchors import all_anchors
from treeclaim.forest.solve.combine import combined_under
from treeclaim.forest.solve.distinct import first_anchors
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.forest.split.split_class import Division, SplitClass, Worth
from treeclaim.forest.table.columns import Trees
from treeclaim.model.names import SHARING_TRAIT


def divide_candidates(problem: Problem) -> Iterator[SplitCandidate]:
    """Yield the candidates of a problem that splits, as the limit and the operator's options ask.

    They are all found before the first one is yielded.
    """
    yield from Splitter(problem).selected()


class Splitter:
    """Draws the candidates of a search that splits."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plan = problem.plan
        self._sharing = with_any_trait(problem.forest, (SHARING_TRAIT,))
        self._classes = [
            SplitClass(problem, name, relation)
            for name, relation in zip(problem.plan.split, problem.split_relations, strict=True)
        ]
        self._reach = first_anchors(problem, (*problem.relations, *problem.split_relations))
        self._required = [with_any_trait(problem.forest, names) for names in problem.plan.required]

    def selected(self) -> list[SplitCandidate]:
        """Return those candidates that the limit and the operator's options ask for."""
        options, limit = self._problem.options, self._plan.request.limit
        if options.randomize:
            candidates = self._first(options.maximum)
            random.shuffle(candidates)
            return candidates[:limit]
        bounds = [count for count in (options.maximum, limit) if count is not None]
        return self._first(min(bounds, default=None))

    def _first(self, count: int | None) -> list[SplitCandidate]:
        candidates: list[SplitCandidate] = []
        most = sys.maxsize if count is None else min(count, sys.maxsize)
        for candidate in islice(self.distinct(), most):
            self._problem.budget.hold(candidate.nbytes)
            candidates.append(candidate)
        return candidates

    def has_candidate(self, anchor: int) -> bool:
        """Tell whether an anchor, given by its number, has a candidate."""
        candidates = self._of_anchor(np.array([anchor], dtype=np.int64))
        return next(candidates, None) is not None

    def distinct(self) -> Iterator[SplitCandidate]:
        """Yield the candidates; one of sharing providers alone may come from several anchors."""
        for anchor, candidate in self._drawn():
            if not self._is_repetition(anchor, candidate):
                yield candidate

    def count_divisions(self, anchor: int, chosen: tuple[int, ...], most: int) -> int:
        """Return a number of divisions of a combination that it has at least; above `most` is enough.

        Where divisions are checked further before they are candidates, the number is 0.
        """
        is_checked = self._required or self._problem.consumes or self._reach is not None
        if is_checked or len(self._classes) != 1:
            return 0
        (split,) = self._classes
        used_units = self.taken(split.name, chosen)
        are_permitted = all(
            split.may_give(position, split.amount + units)
            for position, units in used_units.items()
        )
        return split.count_sets(anchor, used_units, most) if are_permitted else 0

    def of_combination(
        self, anchor: int, chosen: tuple[int, ...], worth: Worth | None = None
    ) -> Iterator[SplitCandidate]:
        """Yield the divisions of a combination of the other slots, unless an earlier anchor has them.

        Args:
            anchor: Its number.
            chosen: Rows of the providers of the other slots.
            worth: Returns what an offer is worth: sets of those that are worth most come first.
        """
        for candidate in self._divide(anchor, chosen, worth):
            if not self._is_repetition(anchor, candidate):
                yield candidate

    def _is_repetition(self, anchor: int, candidate: SplitCandidate) -> bool:
        """Tell whether an earlier anchor has the same candidate.

        All its providers can serve under that anchor too. But its inventories may have other steps, and
        a provider of its own tree stands elsewhere in the vector of parts.
        """
        if self._reach is None:
            return False
        chosen = np.array([[*candidate.chosen, *(row for _, row, _ in candidate.parts)]])
        if not self._sharing[chosen].all():
            return False
        relations = [*range(len(candidate.chosen)), *self._split_numbers(candidate)]
        earlier_anchor = -1
        while True:
            start = np.array([earlier_anchor + 1])
            earlier_anchor = int(self._reach.first_common(relations, chosen, start)[0])
            if earlier_anchor >= anchor:
                return False
            if self._has_candidate_at(earlier_anchor, anchor, candidate):
                return True

    def _split_numbers(self, candidate: SplitCandidate) -> list[int]:
        """Return the number of the relation of each part, behind those of the slots."""
        numbers = {
            split.name: len(candidate.chosen) + at for at, split in enumerate(self._classes)
        }
        return [numbers[name] for name, _, _ in candidate.parts]

    def _has_candidate_at(
        self, earlier_anchor: int, anchor: int, candidate: SplitCandidate
    ) -> bool:
        """Tell whether another anchor that reaches a candidate divides its amounts alike."""
        for split in self._classes:
            division = tuple(part[1:] for part in candidate.parts if part[0] == split.name)
            used_units = self.taken(split.name, candidate.chosen)
            at_other = split.division_at(earlier_anchor, anchor, division, used_units)
            if at_other is None or sorted(at_other) != sorted(division):
                return False
        return True

    def _drawn(self) -> Iterator[tuple[int, SplitCandidate]]:
        if not self._problem.options.breadth_first:
            for anchors, chosen in combined_under(self._problem):
                for anchor, positions in zip(anchors.tolist(), chosen.tolist(), strict=True):
                    for division in self._divide(anchor, tuple(positions)):
                        yield anchor, division
            return
        anchors = all_anchors(self._problem)
        waiting = [
            (anchor, self._of_anchor(anchors[[at]])) for at, anchor in enumerate(anchors.tolist())
        ]
        while waiting:
            still = []
            for anchor, source in waiting:
                self._problem.budget.check()
                candidate = next(source, None)
                if candidate is not None:
                    yield anchor, candidate
                    still.append((anchor, source))
            waiting = still

    def of_anchors(self, anchors: Trees) -> Iterator[tuple[int, SplitCandidate]]:
        """Yield the candidates of some anchors, with their numbers, as each anchor has them."""
        for number in anchors.tolist():
            for candidate in self._of_anchor(np.array([number], dtype=np.int64)):
                yield number, candidate

    def _of_anchor(self, anchor: Trees) -> Iterator[SplitCandidate]:
        for anchors, chosen in combined_under(self._problem, anchor):
            for number, positions in zip(anchors.tolist(), chosen.tolist(), strict=True):
                yield from self._divide(number, tuple(positions))

    def _divide(
        self, anchor: int, chosen: tuple[int, ...], worth: Worth | None = None
    ) -> Iterator[SplitCandidate]:
        """Add all divisions to a combination under an anchor."""
        choices = [
            partial(split.divisions, anchor, self.taken(split.name, chosen), worth)
            for split in self._classes
        ]
        if any(next(draw(), None) is None for draw in choices):
            return
        for divisions in _product(choices):
            self._problem.budget.check()
            parts = tuple(
                (split.name, position, units)
                for split, division in zip(self._classes, divisions, strict=True)
                for position, units in division
            )
            if self._may_be(chosen, parts):
                yield SplitCandidate(chosen, parts)

    def taken(self, resource_class: str, chosen: Sequence[int]) -> dict[int, int]:
        """Return what other groups take of a class, by row, as far as that counts."""
        used_units: dict[int, int] = {}
        if not self._plan.request.sums_groups:
            return used_units
        for slot, position in zip(self._plan.slots, chosen, strict=True):
            if resource_class in slot.resources and resource_class not in slot.lenient:
                used_units[position] = used_units.get(position, 0) + slot.resources[resource_class]
        return used_units

    def _may_be(self, chosen: Sequence[int], parts: Sequence[tuple[str, int, int]]) -> bool:
        """Tell whether a division is permitted as a part of the whole candidate."""
        if not (self._has_traits(chosen, parts) and self._has_units(chosen, parts)):
            return False
        if not self._problem.consumes:
            return True
        allocations = [(position, name, units) for name, position, units in parts]
        if not self._plan.request.sums_groups:
            # Classes are judged apart from each other, to explain a search.
            apart = [
                [allocation for allocation in allocations if allocation[1] == split.name]
                for split in self._classes
            ]
            return all(
                have_room_together(self._problem.forest, class_allocations)
                for class_allocations in apart
            )
        allocations += [
            (position, name, amount)
            for slot, position in zip(self._plan.slots, chosen, strict=True)
            for name, amount in slot.resources.items()
            if name not in slot.lenient
        ]
        return have_room_together(self._problem.forest, allocations)

    def _has_units(self, chosen: Sequence[int], parts: Sequence[tuple[str, int, int]]) -> bool:
        """Tell whether `max_unit` permits what all groups take of a provider together."""
        for split in self._classes:
            used_units = self.taken(split.name, chosen)
            if used_units and not all(
                split.may_give(position, units + used_units.get(position, 0))
                for name, position, units in parts
                if name == split.name
            ):
                return False
        return True

    def _has_traits(self, chosen: Sequence[int], parts: Sequence[tuple[str, int, int]]) -> bool:
        if not self._required:
            return True
        positions = [chosen[slot] for slot in self._plan.unsuffixed]
        positions += [position for _, position, _ in parts]
        return all(has[positions].any() for has in self._required)


def _product(choices: Sequence[Callable[[], Iterator[Division]]]) -> Iterator[list[Division]]:
    """Yield the product of choices that are drawn only as far as they are needed."""
    if not choices:
        yield []
        return
    for division in choices[0]():
        for remaining_divisions in _product(choices[1:]):
            yield [division, *remaining_divisions]


def splits(problem: Problem) -> Iterator[SplitCandidate]:
    """Yield all candidates in the usual order, whatever the operator's options."""
    options = replace(problem.options, breadth_first=False, randomize=False, maximum=None)
    return Splitter(replace(problem, options=options)).distinct()
