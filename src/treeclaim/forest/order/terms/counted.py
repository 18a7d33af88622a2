# SPDX-License-Identifier: Apache-2.0
"""What a candidate is said to use: its trees, and what its slots take of a class."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Mask, Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.names import SHARING_TRAIT


@dataclass(frozen=True, slots=True)
class Taken:
    """What a slot takes of a class.

    Attributes:
        slot: The slot; those of classes that are divided follow upon all others.
        amount: Units.
        is_divided: Whether several providers may give it.
    """

    slot: int
    amount: int
    is_divided: bool = False

    @property
    def least(self) -> int:
        """Return how much a provider gives of it at least, if it gives something."""
        return 1 if self.is_divided else self.amount


class CountedTrees:
    """Which trees each candidate is said to use: those of sharing providers only if all are."""

    def __init__(self, problem: Problem) -> None:
        """Take what a search has."""
        self.tree = problem.forest.order.tree
        self._sharing = sharing_by_position(problem.forest)
        relations = (*problem.relations, *problem.split_relations)
        self._giving = [*problem.giving, *range(len(problem.relations), len(relations))]
        self.may_be_shared = problem.may_leave_anchors
        """Whether a candidate may consist of sharing providers alone."""
        self.are_own = all(relations[slot].pairs.is_local for slot in self._giving)
        """Whether every provider that gives something is of its anchor's tree."""
        self.are_local = all(relation.pairs.is_local for relation in relations)
        """Whether every provider is."""

    def are_known(self, filled: Collection[int]) -> bool:
        """Tell whether the trees of partial candidates in which some slots are filled are known."""
        return set(self._giving) <= set(filled)

    def own(self, chosen: Choices) -> Rows:
        """Return the only tree of each candidate, where all providers are of their anchor's tree."""
        return self.tree[chosen[:, self._giving[0]]]

    def counted(self, chosen: Choices) -> tuple[Rows, Mask]:
        """Return the trees of each candidate.

        Returns:
            Numbers of trees, shape (candidates, k), and which of them are meant; none is twice.
        """
        if self.are_own:
            trees = self.own(chosen)[:, None]
            return trees, np.ones(trees.shape, dtype=np.bool_)
        positions = chosen[:, self._giving]
        trees = self.tree[positions]
        shares = self._sharing[positions]
        is_shared = np.logical_and.reduce(shares, axis=1, keepdims=True)
        meant = ~shares | is_shared
        return trees, first_of_each(trees, meant)


def first_of_each(numbers: Choices, meant: Mask) -> Mask:
    """Tell which of the numbers meant in a row stand there for the first time."""
    first = meant.copy()
    for column in range(1, numbers.shape[1]):
        again = (numbers[:, :column] == numbers[:, [column]]) & meant[:, :column]
        first[:, column] &= ~again.any(axis=1)
    return first


def sharing_by_position(forest: Forest) -> Mask:
    """Tell which providers are sharing ones, by position."""
    if SHARING_TRAIT not in forest.catalogue.traits:
        return np.zeros(len(forest.order.row), dtype=np.bool_)
    return with_any_trait_by_position(forest, (SHARING_TRAIT,))
