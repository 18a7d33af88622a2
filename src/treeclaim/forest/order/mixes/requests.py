# SPDX-License-Identifier: Apache-2.0
"""The requests of a mix in a Forest, and their counts in its trees."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from treeclaim.forest.bounds.budget import UNBOUNDED, Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.mixes.tree_counter import Counts, TreeCounter
from treeclaim.forest.order.totals import Floats
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Catalogue
from treeclaim.model.errors import ResourceClassNotFoundError, TraitsNotFoundError
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.request import CandidateRequest

TOGETHER = 4_096
"""States that are counted between two checks of the deadline."""


@dataclass(frozen=True, slots=True, eq=False)
class MixRequests:
    """The requests of a mix whose names exist.

    Attributes:
        weights: By request, float64.
        requests: The requests.
        amounts: Amount of each class by request.
        counter: Counts them.
        are_apart: Whether no tree is served by providers of another one.
        written: How often the inventories of each class were written when this was read.
        catalogue: The names that existed then.
    """

    weights: Floats
    requests: tuple[CandidateRequest, ...]
    amounts: tuple[Mapping[str, int], ...]
    counter: TreeCounter
    are_apart: bool
    written: tuple[int, ...]
    catalogue: Catalogue

    @property
    def nbytes(self) -> int:
        """Return the memory that they take, except for the mix's own."""
        return self.weights.nbytes + self.counter.nbytes

    def count(self, forest: Forest, trees: Rows, budget: Budget) -> Counts:
        """Return the counts in some trees, shape (trees, requests)."""
        counts = np.zeros((len(trees), len(self.weights)))
        for first in range(0, len(trees), TOGETHER):
            budget.check()
            part = slice(first, first + TOGETHER)
            counts[part] = self.counter.count(forest, trees[part])
        return counts


def requests_of(forest: Forest, mix: Mix, budget: Budget = UNBOUNDED) -> MixRequests:
    """Return the requests of a mix whose names exist, from the cache if they still hold.

    Limits of inventories are part of the counts, so each write of these makes them new.
    """
    classes = sorted(mix.classes & forest.catalogue.resource_classes.keys())
    written = tuple(forest.class_inventories(name).refreshed for name in classes)
    key = ("requests of a mix", mix, forest.has_conditions and forest.overlooks_conditions)
    cached = forest.cache.find(key)
    if (
        isinstance(cached, MixRequests)
        and cached.written == written
        and cached.catalogue is forest.catalogue
    ):
        return cached
    requests = _read(forest, mix, written, budget)
    forest.cache.keep(key, requests, replaces=True)
    return requests


def _read(forest: Forest, mix: Mix, written: tuple[int, ...], budget: Budget) -> MixRequests:
    counts: list[RequestCounts] = []
    known_entries = []
    for entry in mix.requests.values():
        with suppress(TraitsNotFoundError, ResourceClassNotFoundError):
            require_known_names(forest, entry.request)
            counts.append(RequestCounts(forest, entry.request, budget))
            known_entries.append(entry)
        budget.check()
    counter = TreeCounter(forest, counts)
    budget.check()
    return MixRequests(
        np.array([float(entry.weight) for entry in known_entries]),
        tuple(entry.request for entry in known_entries),
        tuple(request.amounts for request in counts),
        counter,
        all(request.are_apart for request in counts),
        written,
        forest.catalogue,
    )
