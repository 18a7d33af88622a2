# SPDX-License-Identifier: Apache-2.0
"""The closed-form count of a request as tests (contract page 101, definitions)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.pairs import Pairs
from treeclaim.forest.solve.problem import Problem, relate
from treeclaim.forest.table.columns import Mask, Rows, search_ascending
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import CandidateRequest, SearchOptions


def relate_request(forest: Forest, request: CandidateRequest, budget: Budget) -> Problem:
    """Relate a request to a Forest, without its limit."""
    return relate(forest, replace(request, limit=None), SearchOptions(), budget)


class ServingProviders:
    """Providers by tree.

    Attributes:
        providers: Rows, ordered by tree, int64, shape (pairs,).
        trees: The tree of each provider, ascending, int64, shape (pairs,).
    """

    def __init__(self, starts: Rows, providers: Rows) -> None:
        """Create it from the start of each tree in `providers`, int64, shape (trees + 1,)."""
        self._starts = starts
        self.providers = providers
        self.trees = np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def list_in_tree(self, tree: int) -> Rows:
        """Return the providers of one tree."""
        return self.providers[self._starts[tree] : self._starts[tree + 1]]

    def find_trees_with_any(self, mask: Mask) -> Mask:
        """Return a mask of the trees with any of the masked providers."""
        trees = self.trees[mask[self.providers]]
        return np.bincount(trees, minlength=len(self._starts) - 1) > 0


@dataclass(frozen=True, slots=True)
class RequestPart:
    """A class of the unsuffixed group, or a set of suffixed groups that differ only in their suffix.

    Attributes:
        amounts: Units by class, given by one provider.
        copies: Number of equal groups, the *k* of the contract.
        are_apart: Whether the groups must have different providers.
        is_divided: Whether several providers may give the amount together.
        is_unsuffixed: Whether the part is of the unsuffixed group.
        serving: The providers that may serve the part.
    """

    amounts: Mapping[str, int]
    copies: int
    are_apart: bool
    is_divided: bool
    is_unsuffixed: bool
    serving: ServingProviders


class RequestCounts:
    """The tests of the count of a request in the trees of a Forest, whatever is free.

    All names in the request must exist.

    Attributes:
        parts: The parts with resources.
        amounts: Units by class of the whole request.
        possible: Mask of the trees that pass the third test, shape (trees,).
        are_apart: Whether trees are independent: no provider serves another tree than its own.
    """

    def __init__(self, forest: Forest, request: CandidateRequest, budget: Budget) -> None:
        # Attributes that groups compare do not constrain a single provider.
        problem = relate_request(forest, replace(request, values=()), budget)
        budget.check()
        self.possible: Mask = np.ones(len(forest.order.roots), dtype=np.bool_)
        if problem.allowed is not None:
            self.possible &= problem.allowed
        self.are_apart = all(
            relation.pairs.is_local for relation in (*problem.relations, *problem.split_relations)
        )
        for slot, relation in zip(problem.plan.slots, problem.relations, strict=True):
            if not slot.resources:
                self.possible &= relation.pairs.reached
        self.parts = [*_make_whole_parts(problem), *_make_divided_parts(problem)]
        self.amounts: Counter[str] = Counter()
        for part in self.parts:
            for name, amount in part.amounts.items():
                self.amounts[name] += amount * part.copies
        unsuffixed = [part.serving for part in self.parts if part.is_unsuffixed]
        for has_traits in problem.rules.required:
            masks = [serving.find_trees_with_any(has_traits) for serving in unsuffixed]
            self.possible &= np.logical_or.reduce([np.zeros_like(self.possible), *masks])
        self.find_serving = cache(self._find_serving)

    def _find_serving(self, name: str) -> ServingProviders:
        """Return the providers that may serve any part with a class."""
        serving = [part.serving for part in self.parts if name in part.amounts]
        if len(serving) == 1:
            return serving[0]
        pairs = np.unique(
            np.concatenate([np.stack([each.trees, each.providers]) for each in serving], axis=1),
            axis=1,
        )
        starts = search_ascending(pairs[0], np.arange(len(self.possible) + 1))
        return ServingProviders(starts, pairs[1])

    @property
    def tests(self) -> Iterator[RequestPart]:
        """Yield the second tests, then the first tests that these do not imply, in the form of divided parts."""
        yield from (part for part in self.parts if not part.is_divided)
        for name, amount in self.amounts.items():
            parts = [part for part in self.parts if name in part.amounts]
            serving = self.find_serving(name)
            size = sum(len(part.serving.providers) for part in parts)
            if size > len(serving.providers) or any(part.is_divided for part in parts):
                yield RequestPart({name: amount}, 1, False, True, False, serving)


def _make_whole_parts(problem: Problem) -> Iterator[RequestPart]:
    slots, isolated = problem.plan.slots, problem.plan.request.isolated
    equal: dict[tuple[object, ...], list[int]] = {}
    for number, slot in enumerate(slots):
        if slot.resources:
            equal.setdefault((slot.group, slot.part, bool(slot.suffix)), []).append(number)
    for numbers in equal.values():
        first = slots[numbers[0]]
        pairs = problem.relations[numbers[0]].pairs
        yield RequestPart(
            first.resources,
            len(numbers),
            len(numbers) > 1 and all(slots[number].suffix in isolated for number in numbers),
            is_divided=False,
            is_unsuffixed=not first.suffix,
            serving=_find_permitting(problem.forest, pairs, first.resources),
        )


def _make_divided_parts(problem: Problem) -> Iterator[RequestPart]:
    for (name, amount), relation in zip(
        problem.plan.split.items(), problem.split_relations, strict=True
    ):
        yield RequestPart(
            {name: amount},
            1,
            are_apart=False,
            is_divided=True,
            is_unsuffixed=True,
            serving=_find_permitting(problem.forest, relation.pairs, {name: None}),
        )


def _find_permitting(
    forest: Forest, pairs: Pairs, resources: Mapping[str, int | None]
) -> ServingProviders:
    """Return the providers whose inventories permit the amounts; None permits any amount."""
    serves = np.ones(len(pairs.provider), dtype=np.bool_)
    for name, amount in resources.items():
        columns = forest.class_inventories(name)
        has, indices = columns.indices_of(pairs.provider)
        serves &= has
        if amount is not None:
            serves[has] &= columns.admits(indices, amount)
    count_before = np.concatenate(([0], np.cumsum(serves)))
    return ServingProviders(count_before[pairs.starts], pairs.provider[serves])
