# SPDX-License-Identifier: Apache-2.0
"""Candidates in which several providers give one amount (contract page 97, section 2).

The usual problem first fills the slots that take one provider each. The minimal viable sets of the
split classes are then added to each combination, which determines the units that other groups leave
at each provider.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from treeclaim.forest.domains.consumed import count_joint_fits
from treeclaim.forest.domains.filters import have_any_trait
from treeclaim.forest.solve.combine import Repetitions, combine_under
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.solve.stage import find_all_anchors
from treeclaim.forest.split.divisions import Division, SplitCandidate, SplitClass
from treeclaim.forest.table.columns import Trees


def divide_candidates(problem: Problem) -> Iterator[SplitCandidate]:
    """Yield the candidates of a problem with split classes, within the limit and the operator's options.

    All candidates are found before the first one is yielded.
    """
    candidates: list[SplitCandidate] = []
    most = sys.maxsize if problem.wanted_count is None else min(problem.wanted_count, sys.maxsize)
    for candidate in islice(Splitter(problem).distinct(), most):
        problem.budget.hold(candidate.nbytes)
        candidates.append(candidate)
    if problem.options.randomize:
        random.shuffle(candidates)
        candidates = candidates[: problem.plan.request.limit]
    yield from candidates


class Splitter:
    """Yields the candidates of a search that splits."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._plan = problem.plan
        self._classes = [
            SplitClass(problem, name, relation)
            for name, relation in zip(problem.plan.split, problem.split_relations, strict=True)
        ]
        self._required = [have_any_trait(problem.forest, names) for names in problem.plan.required]

    def distinct(self) -> Iterator[SplitCandidate]:
        """Yield each candidate once; those of sharing providers alone repeat under several anchors."""
        is_in_turn, repetitions = self._problem.options.breadth_first, Repetitions(self._problem)
        for _, candidate in self._in_turn() if is_in_turn else self.candidates_under():
            if repetitions.is_new(candidate.rows, candidate.key):
                yield candidate

    def candidates_under(
        self, anchors: Trees | None = None
    ) -> Iterator[tuple[int, SplitCandidate]]:
        """Yield the number of the anchor and a candidate, for some anchors (numbers, ascending) or all."""
        for block in combine_under(self._problem, anchors):
            for anchor, chosen_rows in zip(
                block.tree.tolist(), block.chosen_rows.tolist(), strict=True
            ):
                for candidate in self.divide_combination(anchor, tuple(chosen_rows)):
                    yield anchor, candidate

    def _in_turn(self) -> Iterator[tuple[int, SplitCandidate]]:
        """Yield one candidate of each anchor, again and again, until no anchor has more."""
        waiting = [
            self.candidates_under(np.array([tree]))
            for tree in find_all_anchors(self._problem).tolist()
        ]
        while waiting:
            still = []
            for source in waiting:
                self._problem.budget.check()
                for candidate in islice(source, 1):
                    yield candidate
                    still.append(source)
            waiting = still

    def count_divisions(self, anchor: int, chosen_rows: tuple[int, ...], most: int) -> int:
        """Return a lower bound for the number of divisions of a combination; it counts up to `most + 1`.

        The bound is 0 if divisions must pass further checks.
        """
        if self._required or self._problem.consumes or len(self._classes) != 1:
            return 0
        (split,) = self._classes
        used_units = self.used_elsewhere(split.name, chosen_rows)
        are_permitted = all(
            split.admits_units(row, split.amount + units) for row, units in used_units.items()
        )
        sets = split.sets(anchor, used_units) if are_permitted else ()
        return sum(1 for _ in islice(sets, most + 1))

    def divide_combination(
        self, anchor: int, chosen_rows: tuple[int, ...]
    ) -> Iterator[SplitCandidate]:
        """Yield the divisions of a combination of the other slots, given by the rows of their providers."""
        choices = [
            partial(split.divisions, anchor, self.used_elsewhere(split.name, chosen_rows))
            for split in self._classes
        ]
        if any(next(draw(), None) is None for draw in choices):
            return
        for divisions in _product(choices):
            self._problem.budget.check()
            parts = tuple(
                (split.name, row, units)
                for split, division in zip(self._classes, divisions, strict=True)
                for row, units in division
            )
            if self._is_permitted(chosen_rows, parts):
                yield SplitCandidate(chosen_rows, parts)

    def used_elsewhere(self, resource_class: str, chosen_rows: Sequence[int]) -> dict[int, int]:
        """Return the counted units of a class that other groups use, by row."""
        used_units: dict[int, int] = {}
        if not self._plan.request.sums_groups:
            return used_units
        for slot, row in zip(self._plan.slots, chosen_rows, strict=True):
            amount = slot.counted.get(resource_class, 0)
            if amount:
                used_units[row] = used_units.get(row, 0) + amount
        return used_units

    def _is_permitted(
        self, chosen_rows: Sequence[int], parts: Sequence[tuple[str, int, int]]
    ) -> bool:
        if not (self._has_traits(chosen_rows, parts) and self._has_units(chosen_rows, parts)):
            return False
        if not self._problem.consumes:
            return True
        forest = self._problem.forest
        allocations = [(row, name, units) for name, row, units in parts]
        if not self._plan.request.sums_groups:
            # An explanation compares each class alone.
            return all(
                count_joint_fits(forest, [each for each in allocations if each[1] == split.name])
                > 0
                for split in self._classes
            )
        allocations += [
            (row, name, amount)
            for slot, row in zip(self._plan.slots, chosen_rows, strict=True)
            for name, amount in slot.counted.items()
        ]
        return count_joint_fits(forest, allocations) > 0

    def _has_units(
        self, chosen_rows: Sequence[int], parts: Sequence[tuple[str, int, int]]
    ) -> bool:
        for split in self._classes:
            used_units = self.used_elsewhere(split.name, chosen_rows)
            if used_units and not all(
                split.admits_units(row, units + used_units.get(row, 0))
                for name, row, units in parts
                if name == split.name
            ):
                return False
        return True

    def _has_traits(
        self, chosen_rows: Sequence[int], parts: Sequence[tuple[str, int, int]]
    ) -> bool:
        if not self._required:
            return True
        rows = [chosen_rows[slot] for slot in self._plan.unsuffixed]
        rows += [row for _, row, _ in parts]
        return all(has[rows].any() for has in self._required)


def _product(choices: Sequence[Callable[[], Iterator[Division]]]) -> Iterator[list[Division]]:
    """Yield the product of choices, each drawn only as far as needed."""
    if not choices:
        yield []
        return
    for division in choices[0]():
        for remaining_divisions in _product(choices[1:]):
            yield [division, *remaining_divisions]
