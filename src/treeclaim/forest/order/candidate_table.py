# SPDX-License-Identifier: Apache-2.0
"""Candidates as a table by column, for the terms of a score.

A column is a share: one provider of each candidate, with the amount that it gives. If the divided amount of a
candidate has fewer parts than that of another candidate, its remaining shares have 0 units.

Terms sum integer units, so the order of summands does not matter: candidates that only exchange providers
between equal groups have exactly equal scores.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.filters import sharing_rows
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.divisions import SplitCandidate
from treeclaim.forest.table.columns import Integers, Mask, Rows, Trees
from treeclaim.model.request import NO_GROUP

CandidateRows = npt.NDArray[Any]
"""Rows of providers, int64, shape (candidates, slots). With divided amounts: `SplitCandidate`, shape (candidates,)."""


class Share(NamedTuple):
    """Units of one class that one provider of each candidate gives.

    Attributes:
        name: The class.
        slot: The slot that the provider takes; the parts of a divided amount share one number.
        rows: Rows of the providers, shape (candidates,).
        amount: Units, one number or one for each candidate; 0 if the candidate has no such part.
    """

    name: str
    slot: int
    rows: Rows
    amount: "int | Integers"


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Candidates of one search.

    Attributes:
        served: Suffix of a group and rows of a provider that serves it, also if it gives nothing.
        tree: Number of the tree by row.
        sharing: Mask of sharing providers by row; None if all giving providers are in the anchor's tree.
    """

    count: int
    shares: list[Share]
    served: list[tuple[str, Rows]]
    tree: Trees
    sharing: Mask | None

    def find_shares(self, name: str) -> list[Share]:
        """Return the shares of a class."""
        return [share for share in self.shares if share.name == name]

    @cached_property
    def single_trees(self) -> Trees:
        """Return the only tree of each candidate, if all giving providers are in the anchor's tree."""
        return self.tree[self.shares[0].rows]

    @cached_property
    def trees(self) -> tuple[Choices, Mask]:
        """Return the trees of each candidate: those of sharing providers only if all its providers share.

        Returns:
            Numbers of trees, shape (candidates, k), and the mask of those that count; no tree counts twice.
        """
        if self.sharing is None:
            return self.single_trees[:, None], np.ones((self.count, 1), dtype=np.bool_)
        givers = {id(share.rows): share.rows for share in self.shares}
        rows = np.stack(list(givers.values()), axis=1)
        is_sharing, trees = self.sharing[rows], self.tree[rows]
        is_counted = ~is_sharing | is_sharing.all(axis=1, keepdims=True)
        return trees, mask_repetitions(trees, is_counted)


def mask_repetitions(numbers: Choices, is_counted: Mask) -> Mask:
    """Return a mask without the counted numbers that repeat an earlier counted number of their row."""
    is_first = is_counted.copy()
    for column in range(1, numbers.shape[1]):
        is_repeated = (numbers[:, :column] == numbers[:, [column]]) & is_counted[:, :column]
        is_first[:, column] &= ~is_repeated.any(axis=1)
    return is_first


Units = npt.NDArray[np.int64]
"""Values times 2⁶⁰. This exceeds the precision of a float64 value, and the sum of a score does not overflow."""

FULL_SCORE = 2.0**60
"""A value of 1, in units."""


def to_units(values: Floats, factor: float = 1.0) -> Units:
    """Return values, multiplied by a factor, as units."""
    units: Units = np.rint(values * (factor * FULL_SCORE)).astype(np.int64)
    return units


class SlotOptions:
    """The slots of a request with their possible providers.

    Attributes:
        relations: The possible providers of each slot. The slots of divided classes come last.
        suffixes: The group of each slot.
        amounts: Units by class and slot.
        is_local: Whether every giving provider is in its anchor's tree.
    """

    def __init__(self, problem: Problem) -> None:
        plan = problem.plan
        self.problem = problem
        self.forest = problem.forest
        self.relations = (*problem.relations, *problem.split_relations)
        self.suffixes = [slot.suffix for slot in plan.slots] + [NO_GROUP] * len(plan.split)
        self._divided_from = len(plan.slots)
        self._resources = [slot.resources for slot in plan.slots]
        divided = [{name: units} for name, units in plan.split.items()]
        self.amounts: dict[str, dict[int, int]] = {}
        giving = []
        for slot, resources in enumerate([*self._resources, *divided]):
            if resources:
                giving.append(self.relations[slot])
            for name, units in resources.items():
                self.amounts.setdefault(name, {})[slot] = units
        self.is_local = all(relation.pairs.is_local for relation in giving)
        self._sharing = None if self.is_local else sharing_rows(problem.forest)
        self._differing_pairs = {
            frozenset((step.slot, differing_slot))
            for step in problem.rules.steps
            for differing_slot in step.differs
            if step.slot is not None
        }

    def is_divided(self, slot: int) -> bool:
        """Return whether several providers may give the amount of a slot."""
        return slot >= self._divided_from

    def are_apart(self, first: int, second: int) -> bool:
        """Return whether two slots always have different providers."""
        return frozenset((first, second)) in self._differing_pairs

    def find_slots(self, suffixes: Iterable[str]) -> list[int]:
        """Return the slots of some groups."""
        suffix_set = set(suffixes)
        return [slot for slot, suffix in enumerate(self.suffixes) if suffix in suffix_set]

    def find_extremes(self, slot: int, values: Floats, *, is_ceiling: bool) -> Floats:
        """Return the greatest (ceiling) or the least value of a slot's pairs under each root; 0 without pairs."""
        relation: Relation = self.relations[slot]
        limit, nothing = (np.maximum, -np.inf) if is_ceiling else (np.minimum, np.inf)
        if relation.fits is not None:
            values = np.where(relation.fits, values, nothing)
        starts = relation.pairs.starts
        extreme = np.zeros(len(starts) - 1)
        if len(values):
            has = relation.pairs.reached
            extreme[has] = limit.reduceat(values, starts[:-1][has])
            extreme[np.isinf(extreme)] = 0
        return extreme

    def make_table(self, rows: CandidateRows) -> CandidateTable:
        """Return the table of some complete candidates."""
        if not self.problem.plan.split:
            return self.make_partial_table(rows)
        candidates: list[SplitCandidate] = rows.tolist()
        chosen_rows = np.array([candidate.chosen_rows for candidate in candidates], dtype=np.int64)
        table = self.make_partial_table(chosen_rows.reshape(len(candidates), self._divided_from))
        for slot, name in enumerate(self.problem.plan.split, self._divided_from):
            divisions = [
                [part[1:] for part in candidate.parts if part[0] == name]
                for candidate in candidates
            ]
            for share in _make_divided_shares(slot, name, divisions):
                table.shares.append(share)
                table.served.append((NO_GROUP, share.rows))
        return table

    def make_partial_table(
        self, chosen_rows: Choices, filled: Collection[int] | None = None
    ) -> CandidateTable:
        """Return the table of candidates without divided amounts, of the filled slots only; None means all."""
        table = CandidateTable(len(chosen_rows), [], [], self.forest.order.tree, self._sharing)
        for slot, resources in enumerate(self._resources):
            if filled is None or slot in filled:
                rows = np.ascontiguousarray(chosen_rows[:, slot])
                table.served.append((self.suffixes[slot], rows))
                for name, amount in resources.items():
                    table.shares.append(Share(name, slot, rows, amount))
        return table


def _make_divided_shares(
    slot: int, name: str, divisions: Sequence[Sequence[tuple[int, int]]]
) -> list[Share]:
    """Return the shares of a divided amount: the first parts of all candidates, then the second parts, and so on."""
    shares = []
    for number in range(max(map(len, divisions), default=0)):
        parts = [
            division[number] if number < len(division) else (division[0][0], 0)
            for division in divisions
        ]
        rows, amount = np.array(parts, dtype=np.int64).T.copy()
        shares.append(Share(name, slot, rows, amount))
    return shares
