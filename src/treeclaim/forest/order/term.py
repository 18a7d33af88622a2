# SPDX-License-Identifier: Apache-2.0
"""Candidates as a table, the options of slots, and what a term of a score computes from both.

The table is stored by column: a share is one provider of each candidate, so the long form (candidate,
group, class, provider, amount) is the concatenation of all shares. A candidate whose divided amount has
fewer parts than another one's has further shares of 0 units, of the provider of its first part.

Values are counted in whole units, so that the order of summands changes nothing: candidates that differ
only in which of their groups has which provider have equal scores to the last bit.
"""

from abc import ABC, abstractmethod
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
"""Candidates: rows of providers, int64, shape (candidates, slots), or `SplitCandidate` objects, shape (candidates,)."""


class Share(NamedTuple):
    """Units of one class that one provider of each candidate gives to a group.

    Attributes:
        suffix: The group.
        name: The class.
        slot: The slot that the provider takes; the parts of a divided amount share one number.
        position: Rows of the providers, shape (candidates,).
        amount: Units, one number or one for each candidate; 0 if the candidate has no such part.
    """

    suffix: str
    name: str
    slot: int
    position: Rows
    amount: "int | Integers"


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Candidates of one search.

    Attributes:
        count: Number of candidates.
        shares: The amounts that providers give.
        served: Suffix and rows of each provider of a group, also where it gives nothing.
        tree: Number of the tree by row.
        sharing: Which rows are sharing providers; None if all providers are in the anchor's tree.
    """

    count: int
    shares: list[Share]
    served: list[tuple[str, Rows]]
    tree: Trees
    sharing: Mask | None

    def of_class(self, name: str) -> list[Share]:
        """Return the shares of a class."""
        return [share for share in self.shares if share.name == name]

    @cached_property
    def own_trees(self) -> Trees:
        """Return the only tree of each candidate, where all providers are of the anchor's tree."""
        return self.tree[self.shares[0].position]

    @cached_property
    def trees(self) -> tuple[Choices, Mask]:
        """Return the trees of each candidate: those of sharing providers only if all providers share.

        Returns:
            Numbers of trees, shape (candidates, k), and which of them count; no tree counts twice.
        """
        if self.sharing is None:
            return self.own_trees[:, None], np.ones((self.count, 1), dtype=np.bool_)
        givers = {id(share.position): share.position for share in self.shares}
        positions = np.stack(list(givers.values()), axis=1)
        shares, trees = self.sharing[positions], self.tree[positions]
        return trees, first_of_each(trees, ~shares | shares.all(axis=1, keepdims=True))


def first_of_each(numbers: Choices, counts: Mask) -> Mask:
    """Return which of the numbers that count in a row stand there for the first time."""
    first = counts.copy()
    for column in range(1, numbers.shape[1]):
        again = (numbers[:, :column] == numbers[:, [column]]) & counts[:, :column]
        first[:, column] &= ~again.any(axis=1)
    return first


Units = npt.NDArray[np.int64]
"""Values times 2⁶⁰: more digits than a value has, and the sum of all parts of a score still fits."""

ONE = 2.0**60
"""A value of 1, in units."""


def to_units(values: Floats, factor: float = 1.0) -> Units:
    """Return values, times a factor, in whole units."""
    units: Units = np.rint(values * (factor * ONE)).astype(np.int64)
    return units


class SlotOptions:
    """The slots of a request, the providers that may serve each of them, and tables of candidates.

    Attributes:
        problem: The search.
        relations: The possible providers of each slot; slots of divided classes follow all others.
        suffixes: The group of each slot.
        amounts: Units of each slot of each class.
        are_own: Whether every provider that gives something is in its anchor's tree.
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
        self.are_own = all(relation.pairs.is_local for relation in giving)
        self._sharing = None if self.are_own else sharing_rows(problem.forest)
        self._apart = {
            frozenset((step.slot, differing_slot))
            for step in problem.rules.steps
            for differing_slot in step.differs
            if step.slot is not None
        }

    def is_divided(self, slot: int) -> bool:
        """Return whether several providers may give the amount of a slot."""
        return slot >= self._divided_from

    def are_apart(self, first: int, other: int) -> bool:
        """Return whether two slots always have different providers."""
        return frozenset((first, other)) in self._apart

    def of_groups(self, suffixes: Iterable[str]) -> list[int]:
        """Return the slots of some groups."""
        suffix_set = set(suffixes)
        return [slot for slot, suffix in enumerate(self.suffixes) if suffix in suffix_set]

    def extreme(self, slot: int, values: Floats, *, is_ceiling: bool) -> Floats:
        """Return the greatest or the least value of the options of a slot under each root; 0 where there is none.

        Args:
            slot: The slot.
            values: One for each pair of its relation.
            is_ceiling: Whether to return the greatest value, or the least.
        """
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

    def table(self, rows: CandidateRows) -> CandidateTable:
        """Return the table of some complete candidates."""
        if not self.problem.plan.split:
            return self.partial_table(rows)
        candidates: list[SplitCandidate] = rows.tolist()
        chosen = np.array([candidate.chosen for candidate in candidates], dtype=np.int64)
        table = self.partial_table(chosen.reshape(len(candidates), self._divided_from))
        for slot, name in enumerate(self.problem.plan.split, self._divided_from):
            divisions = [
                [part[1:] for part in candidate.parts if part[0] == name]
                for candidate in candidates
            ]
            for share in _divided_shares(slot, name, divisions):
                table.shares.append(share)
                table.served.append((NO_GROUP, share.position))
        return table

    def partial_table(
        self, chosen: Choices, filled: Collection[int] | None = None
    ) -> CandidateTable:
        """Return the table of candidates without divided amounts.

        Args:
            chosen: Rows of providers, shape (candidates, slots).
            filled: The slots whose columns have a meaning; None for all.
        """
        table = CandidateTable(len(chosen), [], [], self.forest.order.tree, self._sharing)
        for slot, resources in enumerate(self._resources):
            if filled is None or slot in filled:
                position, suffix = np.ascontiguousarray(chosen[:, slot]), self.suffixes[slot]
                table.served.append((suffix, position))
                for name, amount in resources.items():
                    table.shares.append(Share(suffix, name, slot, position, amount))
        return table


def _divided_shares(
    slot: int, name: str, divisions: Sequence[Sequence[tuple[int, int]]]
) -> list[Share]:
    """Return the shares of a divided amount: the first part of each candidate, the second one, and so on."""
    shares = []
    for number in range(max(map(len, divisions), default=0)):
        parts = [
            division[number] if number < len(division) else (division[0][0], 0)
            for division in divisions
        ]
        position, amount = np.array(parts, dtype=np.int64).T.copy()
        shares.append(Share(NO_GROUP, name, slot, position, amount))
    return shares


class TermScorer(ABC):
    """A term of a score; all values are in [0, 1], in units."""

    def __init__(self, options: SlotOptions) -> None:
        self.options = options

    @abstractmethod
    def exact(self, table: CandidateTable) -> Units:
        """Return the value of each candidate."""

    def bound(self, *, is_ceiling: bool) -> Units:
        """Return for each root, by number, a value that no candidate under it exceeds, or falls below.

        Only the terms with an opposite (`spread`, `far`) need a floor.
        """
        return np.full(self._roots, int(ONE) * is_ceiling, dtype=np.int64)

    @property
    def _roots(self) -> int:
        return len(self.options.forest.order.roots)
