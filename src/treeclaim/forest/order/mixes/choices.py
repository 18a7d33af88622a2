# SPDX-License-Identifier: Apache-2.0
"""The candidates of many trees at once that differ in what is left, where few choices are to be made.

Providers that serve the same slot, and of which the same is free of everything, are alike: of candidates
that differ in such providers alone, the first one stands for all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treeclaim.forest.domains.pairs import Pairs
from treeclaim.forest.domains.relation import have_common_provider
from treeclaim.forest.order.mixes.requests import requests_of
from treeclaim.forest.order.mixes.tree_counter import joined
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import Integers, Mask, Rows
from treeclaim.model.extension.order import Order, TermName

_OF_USE = (TermName.PACK_PROVIDERS, TermName.SPREAD_PROVIDERS)
"""Terms to which providers are different of which more is used, though as much is free."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotPart:
    """Slots that compete with no others.

    Attributes:
        slots: One slot, or several that want the same of different providers.
        amounts: What each wants, by class; may be empty.
        pairs: Who may serve each.
    """

    slots: tuple[int, ...]
    amounts: Mapping[str, int]
    pairs: Pairs


def _parts_of(problem: Problem) -> list[SlotPart] | None:
    """Return the parts of a request; None if it is not of this kind."""
    plan = problem.plan
    relations = problem.relations
    is_bound = plan.split or plan.lists or plan.required or plan.values or problem.consumes
    is_simple = not is_bound and plan.request.nested
    if not is_simple or not all(relation.pairs.is_local for relation in relations):
        return None
    parts: list[SlotPart] = []
    left = list(range(len(plan.slots)))
    while left:
        first = left.pop(0)
        mine = relations[first].pairs
        rivals = [
            slot
            for slot in left
            if _may_compete(problem, first, slot)
            and have_common_provider(problem.forest, mine, relations[slot].pairs)
        ]
        are_alike = all(
            relations[slot].pairs is mine
            and plan.slots[slot].resources == plan.slots[first].resources
            and _are_apart(problem, first, slot)
            for slot in rivals
        )
        if not are_alike or (rivals and not plan.slots[first].resources):
            return None
        left = [slot for slot in left if slot not in rivals]
        parts.append(SlotPart((first, *rivals), plan.slots[first].resources, mine))
    # Whoever competes with one of a part's slots must be in the part.
    for number, part in enumerate(parts):
        for other in parts[number + 1 :]:
            if any(
                _may_compete(problem, slot, rival) for slot in part.slots for rival in other.slots
            ) and have_common_provider(problem.forest, part.pairs, other.pairs):
                return None
    return parts


def _are_apart(problem: Problem, first: int, other: int) -> bool:
    isolated = problem.plan.request.isolated
    slots = problem.plan.slots
    return slots[first].suffix in isolated and slots[other].suffix in isolated


def _may_compete(problem: Problem, first: int, other: int) -> bool:
    slots = problem.plan.slots
    shared = slots[first].resources.keys() & slots[other].resources.keys()
    return bool(shared) or _are_apart(problem, first, other)


class Some(NamedTuple):
    """Candidates that stand for all others of their trees.

    Attributes:
        tree: Numbers of trees, ascending.
        chosen: Rows of providers, shape (candidates, slots); those of one tree in the usual order.
        undecided: Numbers of trees that may have candidates, but are not among these.
    """

    tree: Rows
    chosen: Choices
    undecided: Rows


@dataclass(frozen=True, slots=True, eq=False)
class _Options:
    """The providers that may serve a part of a request.

    Attributes:
        part: The part.
        static: A number by pair, the same for providers that are alike except for what is used.
        indices: By class that it wants: where the inventory of each pair's provider is.
        others: What tells providers apart besides: for each class, who has it, and where.
    """

    part: SlotPart
    static: Rows
    indices: Sequence[tuple[str, int, Rows]]
    others: Sequence[tuple[str, Mask, Rows]]


class _Choice(NamedTuple):
    """The providers that serve a part in each tree.

    Attributes:
        options: Positions, shape (options, slots of the part).
        first: Which option is the first one of each tree.
        number: How many each has.
        is_open: Whether there are others.
    """

    options: Choices
    first: Rows
    number: Rows
    is_open: Mask


class Choosing:
    """Chooses for one search, while what is used changes."""

    def __init__(self, problem: Problem, order: Order | None, parts: Sequence[SlotPart]) -> None:
        forest = problem.forest
        self._forest = forest
        self._slots = len(problem.plan.slots)
        self._allowed = np.ones(len(forest.order.roots), dtype=np.bool_)
        if problem.allowed is not None:
            self._allowed &= problem.allowed
        mixes = () if order is None else order.mixes
        terms = () if order is None else order.terms
        self._with_use = any(term.name in _OF_USE for term in terms)
        static = np.zeros(forest.row_count, dtype=np.int64)
        names = {name for part in parts for name in part.amounts}
        for mix in mixes:
            names |= mix.classes & forest.catalogue.resource_classes.keys()
            kinds = requests_of(forest, mix, problem.budget).kinds
            static = joined(static, kinds)
        for part in parts:
            self._allowed &= part.pairs.reached
        every = [self._options_of(part, static, sorted(names)) for part in parts]
        self._fixed = [options for options in every if self._is_fixed(options.part)]
        self._options = [options for options in every if not self._is_fixed(options.part)]

    def _is_fixed(self, part: SlotPart) -> bool:
        """Tell whether no tree has a choice for a part."""
        starts = part.pairs.starts
        return len(part.slots) == 1 and bool(
            (starts[1:] - starts[:-1])[self._allowed].max(initial=1) == 1
        )

    @classmethod
    def of(cls, problem: Problem, order: Order | None) -> "Choosing | None":
        """Return it for a search; None if its candidates are not of this kind."""
        parts = _parts_of(problem)
        return None if parts is None else cls(problem, order, parts)

    def _options_of(self, part: SlotPart, static: Rows, names: Sequence[str]) -> _Options:
        rows = part.pairs.provider
        inventories = {
            name: self._forest.class_inventories(name).indices_of(rows) for name in names
        }
        others = []
        for name, (has, indices) in inventories.items():
            if len(indices):
                places = np.zeros(len(rows), dtype=np.int64)
                places[has] = indices
                others.append((name, has, places))
        wanted = [(name, amount, inventories[name][1]) for name, amount in part.amounts.items()]
        return _Options(part, static[part.pairs.provider], wanted, others)

    def some(self, trees: Rows) -> Some:
        """Return the candidates of some trees (numbers, ascending), as things are now."""
        trees = trees[self._allowed[trees]]
        for options in self._fixed:
            rows = options.part.pairs.starts[trees]
            for name, amount, indices in options.indices:
                fits = self._forest.class_inventories(name).fits(indices[rows], amount)
                trees, rows = trees[fits], rows[fits]
        choices = [self._choice(options, trees) for options in self._options]
        number = np.ones(len(trees), dtype=np.int64)
        is_open = wide = np.zeros(len(trees), dtype=np.bool_)
        for choice in choices:
            is_open = is_open | choice.is_open | (wide & (choice.number > 1))
            wide = wide | (choice.number > 1)
            number *= np.where(wide & (number > 1), choice.number > 0, choice.number)
        undecided = trees[is_open & (number > 0)]
        number[is_open] = 0
        at = np.arange(len(trees)).repeat(number)
        which = np.arange(len(at)) - (np.cumsum(number) - number)[at]
        tree_of_state = trees[at]
        chosen = np.empty((len(at), self._slots), dtype=np.int64)
        for options in self._fixed:
            pairs = options.part.pairs
            chosen[:, options.part.slots[0]] = pairs.provider[pairs.starts[tree_of_state]]
        for options, choice in zip(self._options, choices, strict=True):
            row = choice.first[at] + np.minimum(which, choice.number[at] - 1)
            chosen[:, list(options.part.slots)] = choice.options[row]
        return Some(tree_of_state, chosen, undecided)

    def _choice(self, options: _Options, trees: Rows) -> _Choice:
        """Return the providers that serve a part: of those that are alike, the first ones."""
        part = options.part
        first = part.pairs.starts[trees]
        sizes = part.pairs.starts[trees + 1] - first
        begin = np.cumsum(sizes) - sizes
        rows = np.arange(int(sizes.sum())) + (first - begin).repeat(sizes)
        at = np.arange(len(trees)).repeat(sizes)
        for name, amount, indices in options.indices:
            fits = self._forest.class_inventories(name).fits(indices[rows], amount)
            rows, at = rows[fits], at[fits]
        position = part.pairs.provider[rows]
        count = np.bincount(at, minlength=len(trees))
        begin = np.cumsum(count) - count
        copies = len(part.slots)
        if copies == 1:
            if count.max(initial=0) > 1:
                new = self._first_of_kind(options, at, rows)
                position = position[new]
                count = np.bincount(at[new], minlength=len(trees))
                begin = np.cumsum(count) - count
            return _Choice(position[:, None], begin, count, np.zeros(len(trees), dtype=np.bool_))
        new = self._first_of_kind(options, at, rows)
        kinds = np.bincount(at[new], minlength=len(trees))
        enough = count >= copies
        columns = begin[enough, None] + np.arange(copies)
        # Of what is alike the first ones are taken; else there is more than one way.
        return _Choice(
            position[columns],
            np.cumsum(enough) - enough,
            enough.astype(np.int64),
            enough & (kinds > 1),
        )

    def _first_of_kind(self, options: _Options, at: Rows, rows: Rows) -> Mask:
        """Tell which providers are the first of their kind in their tree."""
        keys: list[Integers] = [at, options.static[rows]]
        for name, has, places in options.others:
            columns = self._forest.class_inventories(name)
            some = places[rows]
            keys.append(np.where(has[rows], columns.free.values[some], -1))
            if self._with_use:
                keys.append(columns.used.values[some])
        order = np.lexsort(keys[::-1])
        new = np.ones(len(at), dtype=np.bool_)
        if len(at):
            sorted_keys = [key[order] for key in keys]
            same = np.logical_and.reduce([key[1:] == key[:-1] for key in sorted_keys])
            new[order[1:][same]] = False
        return new
