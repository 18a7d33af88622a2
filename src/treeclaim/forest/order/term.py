# SPDX-License-Identifier: Apache-2.0
"""Terms of a score, and the slots and options with which they compute.

Values are counted in whole units, so that the order of summands changes nothing: candidates that differ
only in which of their groups has which provider have equal scores to the last bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.candidate_table import CandidateTable
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.problem import Problem
from treeclaim.model.request import NO_GROUP

Units = npt.NDArray[np.int64]
"""Values times 2⁶⁰: more digits than a value has, and the sum of all parts of a score still fits."""

ONE = 2.0**60
"""A value of 1, in units."""


def to_units(values: Floats, factor: float = 1.0) -> Units:
    """Return values, times a factor, in whole units."""
    units: Units = np.rint(values * (factor * ONE)).astype(np.int64)
    return units


@dataclass(frozen=True, slots=True)
class Amount:
    """The demand of a slot for a class.

    Attributes:
        slot: The slot; those of divided classes follow upon all others.
        units: Units.
        is_divided: Whether several providers may give it.
    """

    slot: int
    units: int
    is_divided: bool


class SlotOptions:
    """The slots of a request, and the providers that may serve each of them."""

    def __init__(self, problem: Problem) -> None:
        plan = problem.plan
        self.problem = problem
        self.forest = problem.forest
        self.relations = (*problem.relations, *problem.split_relations)
        self.suffixes = [slot.suffix for slot in plan.slots] + [NO_GROUP] * len(plan.split)
        self.amounts: dict[str, list[Amount]] = {}
        """The slots of each class."""
        for slot, want in enumerate(plan.slots):
            for name, units in want.resources.items():
                self.amounts.setdefault(name, []).append(Amount(slot, units, is_divided=False))
        for slot, (name, units) in enumerate(plan.split.items(), len(plan.slots)):
            self.amounts.setdefault(name, []).append(Amount(slot, units, is_divided=True))
        self._apart = {
            frozenset((step.slot, differing_slot))
            for step in problem.rules.steps
            for differing_slot in step.differs
            if step.slot is not None
        }
        self.are_own = all(
            self.relations[amount.slot].pairs.is_local
            for amounts in self.amounts.values()
            for amount in amounts
        )
        """Return whether every provider that gives something is in its anchor's tree."""

    def are_apart(self, first: int, other: int) -> bool:
        """Return whether two slots always have different providers."""
        return frozenset((first, other)) in self._apart

    def of_groups(self, suffixes: Iterable[str]) -> list[int]:
        """Return the slots of some groups."""
        suffix_set = set(suffixes)
        return [slot for slot, suffix in enumerate(self.suffixes) if suffix in suffix_set]

    def greatest(self, slot: int, values: Floats) -> Floats:
        """Return the greatest value of the options of a slot under each root; 0 where there is none.

        Args:
            slot: The slot.
            values: One for each pair of its relation; -inf for pairs that do not count.
        """
        relation: Relation = self.relations[slot]
        if relation.fits is not None:
            values = np.where(relation.fits, values, -np.inf)
        starts = relation.pairs.starts
        greatest = np.zeros(len(starts) - 1)
        if len(values):
            has = relation.pairs.reached
            greatest[has] = np.maximum.reduceat(values, starts[:-1][has])
            greatest[np.isneginf(greatest)] = 0
        return greatest

    def least(self, slot: int, values: Floats) -> Floats:
        """Return the least value of the options of a slot under each root; 0 where there is none."""
        return -self.greatest(slot, -values)


class Term(ABC):
    """A term of a score; all values are in [0, 1], in units."""

    def __init__(self, options: SlotOptions) -> None:
        self.options = options

    @abstractmethod
    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""

    def ceiling(self) -> Units:
        """Return for each root, by number, a value that no candidate under it exceeds."""
        return np.full(self._roots, int(ONE), dtype=np.int64)

    def floor(self) -> Units:
        """Return for each root a value that no candidate under it falls below."""
        return np.zeros(self._roots, dtype=np.int64)

    @property
    def _roots(self) -> int:
        return len(self.options.forest.order.roots)
