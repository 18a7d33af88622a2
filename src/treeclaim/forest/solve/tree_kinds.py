# SPDX-License-Identifier: Apache-2.0
"""Groups trees that a request cannot distinguish, and finds ancestors of providers.

Clouds have many hosts of few models, and most hosts are empty or full. The candidates, scores and counts of one
tree are therefore often valid for many others.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from treeclaim.forest.domains.consumed import has_consumption, include_consumed_classes
from treeclaim.forest.domains.filters import (
    armed_heads,
    have_any_trait,
    likenesses_of_values,
    values_by_row,
)
from treeclaim.forest.feasibility.joint_feasibility import MANY_COMBINATIONS
from treeclaim.forest.solve.problem import Problem
from treeclaim.forest.table.columns import NO_ROW, Integers, Rows, Trees, expand_ranges
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import TermName

_KINDS_TRIED = 256
"""Kinds found without copies after which grouping stops: each further kind must be offset by a copy."""


@dataclass(frozen=True, slots=True)
class Relatives:
    """Ancestors of providers, which depend only on the shape of the Forest.

    Attributes:
        parent: Row of the parent by row, int64; a root is its own parent.
        depth: Depth by row, int64; 0 for a root.
    """

    parent: Rows
    depth: Rows
    root: Rows
    end: Rows

    @property
    def nbytes(self) -> int:
        """Return the bytes of its own arrays; `root` and `end` belong to the order."""
        return self.parent.nbytes + self.depth.nbytes

    @property
    def deepest(self) -> int:
        """Return the greatest depth."""
        return int(self.depth.max(initial=0))

    def common(self, first: Rows, last: Rows) -> Rows:
        """Return the lowest common ancestor-or-self of pairs of rows in one tree, each `last` at or after `first`."""
        ancestor = first.copy()
        above = np.flatnonzero(self.end[ancestor] <= last)
        while len(above):
            ancestor[above] = self.parent[ancestor[above]]
            above = above[self.end[ancestor[above]] <= last[above]]
        return ancestor


def find_relatives(forest: Forest) -> Relatives:
    """Return the ancestors in a Forest, cached until its shape changes."""

    def make() -> Relatives:
        rows, parent = np.arange(forest.row_count), forest.parent.values
        parent = np.where(parent == NO_ROW, rows, parent)
        depth = np.zeros(len(rows), dtype=np.int64)
        reached = rows
        while (is_below := parent[reached] != reached).any():
            depth += is_below
            reached = parent[reached]
        # The cache makes its arrays read-only, but the Forest must still write to its columns: these are views.
        return Relatives(parent, depth, forest.root.values[:], forest.end.values[:])

    return forest.cache.get("relatives", make)


class TreeKinds:
    """Finds trees of an ordered search that have equal candidates with equal scores.

    It ignores `shuffle`, a term that is a number of the tree itself.
    """

    def __init__(self, problem: Problem, related: Sequence[Sequence[Problem] | None] = ()) -> None:
        """Read all columns on which candidates and scores depend.

        `related` has the requests of the mix of each term `keep`; None for a mix with dependent trees.
        """
        self._problem = problem
        relations = (*problem.relations, *problem.split_relations)
        is_local = all(relation.pairs.is_local for relation in relations)
        self.is_worthwhile = is_local and None not in related
        """Return whether enough trees are alike."""
        self._columns: list[Integers] = []
        if self.is_worthwhile:
            mixes = [request for requests in related for request in requests or ()]
            self._columns += _select_columns([problem, *mixes])
        self._first: dict[bytes, int] = {}
        self._copies = 0

    def first_trees(self, trees: Trees) -> Trees:
        """Return for each tree the first tree of its kind in all calls, perhaps itself."""
        first_trees = trees.copy()
        for at, kind in enumerate(_digest_trees(self._problem.forest, trees, self._columns)):
            self._problem.budget.check()
            first_trees[at] = self._first.setdefault(kind, int(trees[at]))
        self._copies += int(np.count_nonzero(first_trees != trees))
        self.is_worthwhile = len(self._first) < _KINDS_TRIED + self._copies
        return first_trees


def find_kinds_if_slow(problem: Problem, trees: Trees) -> Integers | None:
    """Return the kinds of trees if the search visits each tree alone; None if it searches many together.

    It visits trees alone in two cases:

    - Inventories consume others (contract page 102, section 2): counting cannot exclude trees in which each
      group fits alone, but not all together.
    - A tree has very many combinations.
    """

    def counts(slot: int) -> Integers:
        starts = problem.relations[slot].pairs.starts
        return starts[trees + 1] - starts[trees]

    rules = problem.rules
    is_slow = bool(rules.consuming) or (
        not rules.are_independent and rules.at_most(counts).max(initial=0) > MANY_COMBINATIONS
    )
    if is_slow and all(relation.pairs.is_local for relation in problem.relations):
        return TreeKinds(problem).first_trees(trees)
    return None


def _digest_trees(forest: Forest, trees: Trees, columns: Sequence[Integers]) -> Iterator[bytes]:
    """Yield a digest of each tree's part of the columns."""
    first = forest.order.roots[trees]
    counts = forest.order.end[first] - first
    rows = expand_ranges(first, counts)
    matrix = np.ascontiguousarray(np.stack([column[rows] for column in columns], axis=1))
    ends = counts.cumsum()
    for begin, end in zip((ends - counts).tolist(), ends.tolist(), strict=True):
        yield blake2b(matrix[begin:end].tobytes(), digest_size=16).digest()


def _select_columns(problems: Sequence[Problem]) -> Iterator[Integers]:
    """Yield the columns, by row, on which the candidates of any problem depend."""
    forest = problems[0].forest
    order = forest.order
    rows = np.arange(forest.row_count)
    yield order.end - rows
    yield rows - find_relatives(forest).parent
    heads = armed_heads(forest)
    if heads is not None:
        yield np.where(heads == NO_ROW, 1, heads - rows)
    relations = [each for problem in problems for each in problem.relations]
    relations += [each for problem in problems for each in problem.split_relations]
    for pairs in {id(relation.pairs): relation.pairs for relation in relations}.values():
        yield _by_row(forest, pairs.provider, np.ones(1, dtype=np.int64))
    names = {name for problem in problems for name in problem.plan.request.classes}
    yield from _select_inventory_columns(
        forest, names, ("free", "used", "min_unit", "max_unit", "step_size")
    )
    for problem in problems:
        if problem.allowed is not None:
            yield _by_row(forest, order.roots, problem.allowed.astype(np.int64))
        for has in problem.rules.required:
            yield has.astype(np.int64)
        for name in problem.rules.values:
            yield likenesses_of_values(forest, name)
        if problem.plan.split:
            # Traits of the unsuffixed group are checked after the split.
            for traits in problem.plan.required:
                yield have_any_trait(forest, traits).astype(np.int64)
        yield from _select_order_columns(problem)


def _select_order_columns(problem: Problem) -> Iterator[Integers]:
    forest, order = problem.forest, problem.plan.request.order
    for preference in () if order is None else order.preferences:
        yield have_any_trait(forest, (preference.trait,)).astype(np.int64)
    for term in () if order is None else order.terms:
        if term.name in (TermName.MOST, TermName.LEAST):
            yield values_by_row(forest, term.arguments[0])


def _select_inventory_columns(
    forest: Forest, names: Collection[str], columns: Sequence[str]
) -> Iterator[Integers]:
    """Yield columns of classes, and of the classes that these consume, by row."""
    consuming = ("pattern",) if has_consumption(forest) else ()
    for name in sorted(include_consumed_classes(forest, names)):
        inventories = forest.class_inventories(name)
        indices = inventories.living_indices()
        rows = inventories.row.values[indices]
        for column in (*columns, *consuming):
            yield _by_row(forest, rows, getattr(inventories, column).values[indices])


def _by_row(forest: Forest, rows: Integers, values: Integers) -> Integers:
    by_row = np.zeros(forest.row_count, dtype=np.int64)
    by_row[rows] = values
    return by_row
