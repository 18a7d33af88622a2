# SPDX-License-Identifier: Apache-2.0
"""The requests of a mix in a Forest, and how many consumers of each fit into its trees."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.mixes.counting import parts_of, related
from treeclaim.forest.order.mixes.part_counts import Counts, PartCounts
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.request import CandidateRequest

TOGETHER = 4_096
"""States that are counted between two looks at the budget."""


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of a mix whose names exist.

    Attributes:
        weights: By request, float64.
        requests: The requests.
        amounts: What each takes of each class.
        counts: Counts those that have parts.
        counted: Numbers of those.
        others: Numbers of the others, and their counts.
        kinds: A number by position: providers that have the same are the same to all requests, but
            for what is used of them.
        are_apart: Whether what is taken in one tree is never lent by another one.
    """

    weights: Floats
    requests: tuple[CandidateRequest, ...]
    amounts: tuple[Mapping[str, int], ...]
    counts: PartCounts
    counted: Rows
    others: tuple[tuple[int, RequestCounts], ...]
    kinds: Rows
    are_apart: bool

    @property
    def nbytes(self) -> int:
        """Return the memory that they take, except for the mix's own."""
        others = sum(counts.nbytes for _, counts in self.others)
        own = self.kinds.nbytes + self.weights.nbytes + self.counted.nbytes
        return own + self.counts.nbytes + others

    def now(self, forest: Forest, trees: Rows, budget: Budget) -> Counts:
        """Return how many consumers of each fit into some trees, shape (trees, requests)."""
        counts = np.zeros((len(trees), len(self.weights)))
        for first in range(0, len(trees), TOGETHER):
            budget.check()
            some = slice(first, first + TOGETHER)
            counts[some, self.counted] = self.counts.now(forest, trees[some])[0]
        for number, request_counts in self.others:
            budget.check()
            counts[:, number] = request_counts.in_trees(forest)[trees]
        return counts


class Standing:
    """What fits into each tree now, kept while single trees change."""

    def __init__(self, requests: Requests, forest: Forest) -> None:
        """Begin with nothing counted.

        Args:
            requests: The requests of a mix.
            forest: Where to count; what is used there may change.
        """
        roots = len(forest.order.roots)
        self.requests = requests
        self._forest = forest
        self._counted_at = np.full(roots, -1, dtype=np.int64)
        self._counts, self._kept = requests.counts.now(forest, np.arange(0))
        self._counts = np.zeros((roots, self._counts.shape[1]))
        self._kept = [np.zeros((roots, kept.shape[1])) for kept in self._kept]

    @property
    def nbytes(self) -> int:
        """Return the memory that it takes."""
        return self._counts.nbytes + sum(kept.nbytes for kept in self._kept)

    def now(self, trees: Rows, moment: int, changed_at: Rows) -> tuple[Counts, list[Floats]]:
        """Return what `PartCounts.now` returns.

        Args:
            trees: Numbers of trees.
            moment: The moment of what is used now.
            changed_at: The moment at which that changed last in each of these trees.
        """
        stale = np.unique(trees[self._counted_at[trees] < changed_at])
        if len(stale):
            counts, several = self.requests.counts.now(self._forest, stale)
            self._counts[stale] = counts
            for kept, some in zip(self._kept, several, strict=True):
                kept[stale] = some
            self._counted_at[stale] = moment
        return self._counts[trees], [kept[trees] for kept in self._kept]


def requests_of(forest: Forest, mix: Mix, budget: Budget = UNBOUNDED) -> Requests:
    """Return those requests of a mix whose names exist; kept as long as they hold.

    Limits of inventories decide how they are counted, so each write of these makes them new.
    """
    classes = sorted(mix.classes & forest.catalogue.resource_classes.keys())
    written = tuple(forest.class_inventories(name).refreshed for name in classes)
    key = ("requests of a mix", mix, forest.has_conditions and forest.overlooks_conditions)
    kept = forest.cache.find(key)
    if isinstance(kept, _Kept) and kept.is_of(forest, written):
        return kept.requests
    forest.cache.take(key)
    read = _Kept(written, forest.catalogue, _read(forest, mix, budget))
    forest.cache.keep(key, read)
    return read.requests


@dataclass(slots=True, eq=False)
class _Kept:
    """Requests of a mix, and of when they are; it refers to names that others have too."""

    written: tuple[int, ...]
    catalogue: Catalogue
    requests: Requests

    def is_of(self, forest: Forest, written: tuple[int, ...]) -> bool:
        """Tell whether this was read when a mix was written last, of the names of a Forest."""
        return self.written == written and self.catalogue is forest.catalogue

    @property
    def nbytes(self) -> int:
        """Return the bytes of what is kept."""
        return self.requests.nbytes


def _read(forest: Forest, mix: Mix, budget: Budget) -> Requests:
    weights: list[float] = []
    requests: list[CandidateRequest] = []
    parts, allowed, counted = [], [], []
    others: list[tuple[int, RequestCounts]] = []
    are_apart = True
    for asked in mix.requests.values():
        try:
            require_known_names(forest, asked.request)
        except (TraitsNotFoundError, ResourceClassNotFoundError):
            # Nobody has what is gone.
            continue
        problem = related(forest, asked.request, budget)
        budget.check()
        relations = (*problem.relations, *problem.split_relations)
        are_apart &= all(relation.pairs.is_local for relation in relations)
        budget.check()
        some = parts_of(problem)
        if some is None:
            others.append((len(weights), RequestCounts(forest, asked.request, budget)))
        else:
            counted.append(len(weights))
            parts.append(some)
            allowed.append(problem.allowed)
        weights.append(float(asked.weight))
        requests.append(asked.request)
    budget.check()
    counts = PartCounts(forest, parts, allowed)
    budget.check()
    # Other counts may tell any two providers apart.
    positions = np.arange(len(forest.order.row))
    kinds = positions if others else counts.kinds(forest)
    numbers = np.array(counted, dtype=np.int64)
    return Requests(
        np.array(weights),
        tuple(requests),
        tuple(map(_amounts, requests)),
        counts,
        numbers,
        tuple(others),
        kinds,
        are_apart,
    )


def _amounts(request: CandidateRequest) -> Mapping[str, int]:
    amounts: dict[str, int] = {}
    for group in request.groups:
        for name, amount in group.resources.items():
            amounts[name] = amounts.get(name, 0) + amount
    return amounts
