# SPDX-License-Identifier: Apache-2.0
"""The count of a request in each tree: a closed form, not a search (contract page 101, definitions)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.pairs import Pairs
from treeclaim.forest.order.mixes.counting import related
from treeclaim.forest.table.columns import Integers, Mask, Positions, Rows, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.sums import GREATEST, sums_by
from treeclaim.model.request import CandidateRequest

Cell = tuple[int, str]
"""Position of a provider, and name of a resource class."""


class Served:
    """Providers by tree.

    Attributes:
        providers: Positions, those of one tree after those of another, int64, shape (pairs,).
        trees: The tree of each, ascending, int64, shape (pairs,).
    """

    def __init__(self, starts: Rows, providers: Positions) -> None:
        """Take where the providers of each tree begin, int64, shape (trees + 1,)."""
        self._starts = starts
        self.providers = providers
        self.trees = np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def of_tree(self, tree: int) -> Positions:
        """Return the providers of one tree."""
        return self.providers[self._starts[tree] : self._starts[tree + 1]]

    def only(self, tree: int) -> "Served":
        """Return the providers of one tree, as tree 0."""
        providers = self.of_tree(tree)
        return Served(np.array([0, len(providers)]), providers)

    @property
    def nbytes(self) -> int:
        """Return the memory that this takes."""
        return self._starts.nbytes + self.providers.nbytes + self.trees.nbytes

    def sums(self, values: Integers) -> Integers:
        """Return the sum of the values of the providers of each tree, at most `GREATEST`."""
        return sums_by(self.trees, values, len(self._starts) - 1)


@dataclass(frozen=True, slots=True)
class Part:
    """One class of the unsuffixed group, or one set of suffixed groups that differ only in their suffix.

    Attributes:
        amounts: Amount of each class that one provider gives.
        copies: Number of equal groups, the *k* of the contract.
        are_apart: Whether the groups must have different providers.
        is_divided: Whether several providers may give the amount together.
        served: The providers that may serve the part.
    """

    amounts: Mapping[str, int]
    copies: int
    are_apart: bool
    is_divided: bool
    served: Served


class RequestCounts:
    """Counts a request in the trees of a Forest, with the amounts that are in use now.

    Attributes:
        parts: The parts that ask for resources.
        amounts: Amount of each class in the whole request.
        possible: Which trees pass the third test, shape (trees,).
    """

    def __init__(self, forest: Forest, request: CandidateRequest, budget: Budget) -> None:
        """Find the providers that may serve each part, whatever is free.

        Args:
            forest: The Forest. Names in the request exist.
            request: The request.
            budget: The time that this may take.
        """
        problem = related(forest, request, budget)
        plan = problem.plan
        self.amounts: dict[str, int] = dict(plan.split)
        self.possible: Mask = np.ones(len(forest.order.roots), dtype=np.bool_)
        if problem.allowed is not None:
            self.possible &= problem.allowed
        self.parts: list[Part] = []
        equal: dict[tuple[object, ...], list[int]] = {}
        for number, slot in enumerate(plan.slots):
            if not slot.resources:
                self.possible &= problem.relations[number].pairs.reached
                continue
            for name, amount in slot.resources.items():
                self.amounts[name] = self.amounts.get(name, 0) + amount
            key = (slot.group, slot.part, bool(slot.suffix))
            equal.setdefault(key, []).append(number)
        serving_unsuffixed: list[Part] = []
        for numbers in equal.values():
            slot = plan.slots[numbers[0]]
            isolated = plan.request.isolated
            part = Part(
                slot.resources,
                len(numbers),
                len(numbers) > 1 and all(plan.slots[one].suffix in isolated for one in numbers),
                is_divided=False,
                served=_permitting(forest, problem.relations[numbers[0]].pairs, slot.resources),
            )
            self.parts.append(part)
            if not slot.suffix:
                serving_unsuffixed.append(part)
        for name, relation in zip(plan.split, problem.split_relations, strict=True):
            amounts = {name: plan.split[name]}
            served = _permitting(forest, relation.pairs, {})
            part = Part(amounts, 1, are_apart=False, is_divided=True, served=served)
            self.parts.append(part)
            serving_unsuffixed.append(part)
        for has_traits in problem.rules.required:
            self.possible &= _have_any(serving_unsuffixed, has_traits, len(self.possible))

        self._by_class = {name: self._serving_class(name) for name in self.amounts}

    def _serving_class(self, name: str) -> Served:
        """Return the providers that may serve any part with a class."""
        served = [part.served for part in self.parts if name in part.amounts]
        if len(served) == 1:
            return served[0]
        trees = np.concatenate([some.trees for some in served])
        providers = np.concatenate([some.providers for some in served])
        pairs = np.unique(np.stack([trees, providers]), axis=1)
        starts = search_ascending(pairs[0], np.arange(len(self.possible) + 1))
        return Served(starts, pairs[1])

    @property
    def nbytes(self) -> int:
        """Return the memory that this takes."""
        served = (*(part.served for part in self.parts), *self._by_class.values())
        return self.possible.nbytes + sum(each.nbytes for each in served)

    def in_trees(self, forest: Forest) -> Integers:
        """Return the count in each tree, int64, shape (trees,).

        Args:
            forest: The Forest, or one of the same shape with other amounts in use.
        """
        return self._counts(forest, self.possible, lambda served: served, {})

    def in_tree(self, forest: Forest, tree: int, taken: Mapping[Cell, int]) -> int:
        """Return the count in one tree once some amounts are taken, with what they consume."""
        if not self.possible[tree]:
            return 0
        possible = self.possible[tree : tree + 1]
        return int(self._counts(forest, possible, lambda served: served.only(tree), taken)[0])

    def _counts(
        self,
        forest: Forest,
        possible: Mask,
        within: Callable[[Served], Served],
        taken: Mapping[Cell, int],
    ) -> Integers:
        """Return the counts in all trees, or in those to which the providers are restricted."""
        counts = np.where(possible, GREATEST, 0)
        for name, all_served in self._by_class.items():
            served = within(all_served)
            free = served.sums(_free(forest, name, served.providers, taken))
            np.minimum(counts, free // self.amounts[name], out=counts)
        for part in self.parts:
            if not part.is_divided:
                count = _count_part(forest, part, within(part.served), taken)
                np.minimum(counts, count, out=counts)
        return counts

    def serving(self, name: str, tree: int) -> Positions:
        """Return the providers in a tree that may serve a part with a class."""
        return self._by_class[name].of_tree(tree)


def _permitting(forest: Forest, pairs: Pairs, resources: Mapping[str, int]) -> Served:
    """Return the pairs whose inventories permit the amounts."""
    serves = np.ones(len(pairs.provider), dtype=np.bool_)
    for name, amount in resources.items():
        columns = forest.class_inventories(name)
        has, indices = columns.indices_of(forest.order.row[pairs.provider])
        serves &= has
        serves[has] &= columns.admits(indices, amount)
    before = np.concatenate(([0], np.cumsum(serves)))
    return Served(before[pairs.starts], pairs.provider[serves])


def _have_any(parts: Sequence[Part], wanted: Mask, trees: int) -> Mask:
    has: Mask = np.zeros(trees, dtype=np.bool_)
    for part in parts:
        has |= part.served.sums(wanted[part.served.providers].astype(np.int64)) > 0
    return has


def _free(forest: Forest, name: str, providers: Positions, taken: Mapping[Cell, int]) -> Integers:
    """Return the free amounts of a class at some providers, at least 0, once some are taken."""
    columns = forest.class_inventories(name)
    has, indices = columns.indices_of(forest.order.row[providers])
    free = np.zeros(len(providers), dtype=np.int64)
    free[has] = columns.free.values[indices]
    for (position, of_class), amount in taken.items():
        if of_class == name:
            free[providers == position] -= amount
    return np.maximum(free, 0)


def _count_part(forest: Forest, part: Part, served: Served, taken: Mapping[Cell, int]) -> Integers:
    """Return for each tree the greatest *x* that passes the second test."""
    fits = np.full(len(served.providers), GREATEST, dtype=np.int64)
    for name, amount in part.amounts.items():
        np.minimum(fits, _free(forest, name, served.providers, taken) // amount, out=fits)
    counts = np.minimum(served.sums(fits) // part.copies, GREATEST)
    while part.are_apart:
        fewer = served.sums(np.minimum(fits, counts[served.trees])) // part.copies
        if (fewer == counts).all():
            break
        counts = fewer
    return counts
