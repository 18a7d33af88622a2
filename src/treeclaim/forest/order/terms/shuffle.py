# SPDX-License-Identifier: Apache-2.0
"""`shuffle`: a number that depends on a seed and the root of the tree."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.order.terms.counted import CountedTrees
from treeclaim.forest.order.terms.term import Partial, TermValue
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.solve.partial.blocks import Choices
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest

_HASH_BYTES = 8
"""Bytes of a digest."""

_HASHES = 1 << (8 * _HASH_BYTES)
"""How many different digests there are."""


class Shuffle(TermValue):
    """A number that depends on a seed and the root of the tree: `shuffle`."""

    def __init__(self, trees: CountedTrees, numbers: Floats, rank: Rows) -> None:
        """Take the numbers of all trees, and the ranks of their roots' uuids."""
        self._trees = trees
        self._numbers = numbers
        self._rank = rank

    def exact(self, chosen: Choices) -> Floats:
        """Return the number of the tree, of several that whose root has the smallest uuid."""
        trees, meant = self._trees.counted(chosen)
        ranks = np.where(meant, self._rank[trees], len(self._rank))
        first = ranks.argmin(axis=1)
        numbers: Floats = self._numbers[trees[np.arange(len(trees)), first]]
        return numbers

    @cached_property
    def ceiling(self) -> Floats:
        """Return the number of each tree, unless only others may serve."""
        return np.ones(len(self._numbers)) if self._trees.may_be_shared else self._numbers

    def bound(self, partial: Partial) -> Floats:
        """Return the number of the tree, where it is known, else the greatest there may be."""
        if self._trees.may_be_shared and self._trees.are_known(partial.filled):
            return self.exact(partial.chosen)
        return self.ceiling[partial.anchor]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of all trees."""

    values: Floats

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""
        return self.values.nbytes


def tree_numbers(forest: Forest, seed: str, budget: Budget = UNBOUNDED) -> Floats:
    """Return the number in [0, 1) of each tree that `shuffle` with a seed gives it."""

    def made() -> _Numbers:
        uuids = forest.uuid.values[forest.order.row[forest.order.roots]].tolist()
        begin = f"{seed}/".encode()
        numbers = np.empty(len(uuids))
        for tree, uuid in enumerate(uuids):
            budget.check()
            numbers[tree] = _fraction(begin + uuid)
        return _Numbers(numbers)

    return forest.cache.get(("shuffle", seed), made).values


def _fraction(text: bytes) -> float:
    digest = hashlib.sha256(text).digest()[:_HASH_BYTES]
    return float(int.from_bytes(digest, "big") / _HASHES)


def tree_ranks(forest: Forest) -> Rows:
    """Return how many trees have a root with a smaller uuid than each."""

    def made() -> Ranks:
        uuids = forest.uuid.values[forest.order.row[forest.order.roots]]
        ranks = np.empty(len(uuids), dtype=np.int64)
        ranks[np.argsort(uuids)] = np.arange(len(uuids))
        return Ranks(ranks)

    return forest.cache.get("ranks of trees", made).values


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of all trees."""

    values: Rows

    @property
    def nbytes(self) -> int:
        """Return the memory that they take."""
        return self.values.nbytes
