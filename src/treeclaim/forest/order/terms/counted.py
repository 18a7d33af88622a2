# SPDX-License-Identifier: Apache-2.0
"""What a candidate is said to use: its trees, and what its slots take of a class."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treeclaim.forest.domains.filters import with_any_trait_by_position
from treeclaim.forest.domains.relation import Relation
from treeclaim.forest.order.terms.term import Partial
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
        self.tree = problem.forest.order.tree
        self.budget = problem.budget
        self.sharing = sharing_by_position(problem.forest)
        """Which providers are sharing ones, by position."""
        relations = (*problem.relations, *problem.split_relations)
        self.giving = (*problem.giving, *range(len(problem.relations), len(relations)))
        """The slots whose providers give something."""
        self._relations = relations
        self.may_be_shared = problem.may_leave_anchors
        """Whether a candidate may consist only of sharing providers."""
        self.are_own = all(relations[slot].pairs.is_local for slot in self.giving)
        """Whether every provider that gives something is of its anchor's tree."""
        self.are_local = all(relation.pairs.is_local for relation in relations)
        """Whether every provider is."""

    def are_known(self, filled: Collection[int]) -> bool:
        """Tell whether the trees of partial candidates in which some slots are filled are known."""
        return set(self.giving) <= set(filled)

    @cached_property
    def _own(self) -> Mapping[int, Mask]:
        """Tell under which roots each slot has options that are not sharing providers."""
        masks = {}
        for slot in self.giving:
            relation = self._relations[slot]
            has = ~self.sharing[relation.pairs.provider]
            fits = has if relation.fits is None else has & relation.fits
            masks[slot] = Relation(relation.pairs, fits).reached(0, len(relation.pairs.starts) - 1)
        return masks

    def may_be_own(self, partial: Partial) -> Mask:
        """Tell which partial candidates may become candidates that do not consist only of sharing providers."""
        may_be: Mask = np.logical_or.reduce(
            [
                ~self.sharing[partial.chosen[:, slot]]
                if slot in partial.filled
                else self._own[slot][partial.anchor]
                for slot in self.giving
            ]
        )
        return may_be

    def own_trees(self, chosen: Choices) -> Rows:
        """Return the only tree of each candidate, where all providers are of their anchor's tree."""
        return self.tree[chosen[:, self.giving[0]]]

    def counted(self, chosen: Choices) -> tuple[Rows, Mask]:
        """Return the trees of each candidate.

        Returns:
            Numbers of trees, shape (candidates, k), and which of them are meant; none is twice.
        """
        if self.are_own:
            trees = self.own_trees(chosen)[:, None]
            return trees, np.ones(trees.shape, dtype=np.bool_)
        positions = chosen[:, self.giving]
        trees = self.tree[positions]
        shares = self.sharing[positions]
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
