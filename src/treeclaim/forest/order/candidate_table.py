# SPDX-License-Identifier: Apache-2.0
"""Candidates as a table: which provider of each candidate gives how much of a class to a group.

The table is stored by column: a share is one provider of each candidate, so the long form (candidate,
group, class, provider, amount) is the concatenation of all shares. A candidate whose divided amount has
fewer parts than another one's has shares of 0 units.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from treeclaim.forest.domains.filters import with_any_trait
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.split.candidate import SplitCandidate
from treeclaim.forest.table.columns import Integers, Mask, Rows, Trees
from treeclaim.forest.table.forest import Forest
from treeclaim.model.names import SHARING_TRAIT
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

    @property
    def is_present(self) -> "Mask | np.bool_":
        """Return which candidates have the share."""
        return np.greater(self.amount, 0)


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """Candidates of one search.

    Attributes:
        count: Number of candidates.
        shares: What providers give.
        served: Suffix, rows and presence of each provider of a group, also where it gives nothing.
        tree: Number of the tree by row.
        sharing: Which rows are sharing providers; None if all providers are of the anchor's tree.
    """

    count: int
    shares: Sequence[Share]
    served: Sequence[tuple[str, Rows, "Mask | np.bool_"]]
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
        givers = list({id(share.position): share for share in self.shares}.values())
        positions = np.stack([share.position for share in givers], axis=1)
        is_present = np.stack(
            [np.broadcast_to(share.is_present, self.count) for share in givers], axis=1
        )
        shares = self.sharing[positions]
        is_shared = (shares | ~is_present).all(axis=1, keepdims=True)
        trees = self.tree[positions]
        return trees, first_of_each(trees, is_present & (~shares | is_shared))


class CandidateTables:
    """Makes tables of the candidates of one search."""

    def __init__(self, problem: Problem) -> None:
        plan = problem.plan
        self._slots = plan.slots
        self._split = plan.split
        self._tree = problem.forest.order.tree
        relations = (*problem.relations, *problem.split_relations)
        giving = (*problem.giving, *range(len(problem.relations), len(relations)))
        self.are_own = all(relations[slot].pairs.is_local for slot in giving)
        """Return whether every provider that gives something is in its anchor's tree."""
        self._sharing = None if self.are_own else sharing_by_row(problem.forest)

    def table(self, rows: CandidateRows) -> CandidateTable:
        """Return the table of some complete candidates."""
        return self._of_divisions(rows.tolist()) if self._split else self.of_choices(rows)

    def of_choices(self, chosen: Choices, filled: Collection[int] | None = None) -> CandidateTable:
        """Return the table of candidates without divided amounts.

        Args:
            chosen: Rows of providers, shape (candidates, slots).
            filled: The slots whose columns have a meaning; None for all.
        """
        shares, served = [], []
        for slot, want in enumerate(self._slots):
            if filled is None or slot in filled:
                position = np.ascontiguousarray(chosen[:, slot])
                served.append((want.suffix, position, np.True_))
                for name, amount in want.resources.items():
                    shares.append(Share(want.suffix, name, slot, position, amount))
        return CandidateTable(len(chosen), shares, served, self._tree, self._sharing)

    def _of_divisions(self, candidates: Sequence[SplitCandidate]) -> CandidateTable:
        shape = len(candidates), len(self._slots)
        chosen = np.array([candidate.chosen for candidate in candidates], dtype=np.int64)
        table = self.of_choices(chosen.reshape(shape))
        shares, served = list(table.shares), list(table.served)
        for slot, name in enumerate(self._split, len(self._slots)):
            parts = [
                [part[1:] for part in candidate.parts if part[0] == name]
                for candidate in candidates
            ]
            most = max(map(len, parts), default=0)
            padded = np.array(
                [
                    [*division, *[(division[0][0], 0)] * (most - len(division))]
                    for division in parts
                ],
                dtype=np.int64,
            ).reshape(len(candidates), most, 2)
            for number in range(most):
                position, amount = padded[:, number].T.copy()
                shares.append(Share(NO_GROUP, name, slot, position, amount))
                served.append((NO_GROUP, position, amount > 0))
        return CandidateTable(len(candidates), shares, served, self._tree, self._sharing)


def first_of_each(numbers: Choices, counts: Mask) -> Mask:
    """Return which of the numbers that count in a row stand there for the first time."""
    first = counts.copy()
    for column in range(1, numbers.shape[1]):
        again = (numbers[:, :column] == numbers[:, [column]]) & counts[:, :column]
        first[:, column] &= ~again.any(axis=1)
    return first


def sharing_by_row(forest: Forest) -> Mask:
    """Return which rows are sharing providers."""
    if SHARING_TRAIT not in forest.catalogue.traits:
        return np.zeros(forest.row_count, dtype=np.bool_)
    return with_any_trait(forest, (SHARING_TRAIT,))
