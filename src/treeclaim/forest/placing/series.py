# SPDX-License-Identifier: Apache-2.0
"""Places consumers of separate calls one after the other in a scratch that follows the Forest.

Each consumer is placed beside the consumers before it, as if these were already written. Consumers with equal requests
share a query, because preparing a query takes much longer than placing a consumer. Queries are kept while only used
amounts change: `may_follow` compares these with the Forest, and only trees that differ are searched again. A consumer
that was placed and then written causes no difference.
"""

from time import thread_time

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.placing.candidate import make_placement
from treeclaim.forest.placing.query_pool import QueryPool
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.placing import Placement, PlacingRequest

MOST_BYTES = 32_000_000
"""Bytes of a series, enough for a dozen flavors on 13,000 hosts. Beyond it, queries are dropped."""


class OutOfTimeError(TreeclaimError):
    """The time for which a series may be used is over."""


class PlacementSeries:
    """Places consumers without rules that are not holds and do not draw from holds."""

    def __init__(self, forest: Forest, most_bytes: int) -> None:
        """Start from the current used amounts; `most_bytes` limits the memory of a search."""
        self._forest = forest
        self._end = 0.0
        self._budget = Budget(None, most_bytes, interrupted=self._check)
        self._pool = QueryPool(ScratchForest(forest), self._budget, MOST_BYTES)
        self._is_over = False
        self._shape = forest.order, forest.catalogue
        self._overwrite_count = _count_overwrites(forest)

    def _check(self) -> None:
        if thread_time() > self._end:
            raise OutOfTimeError

    def may_follow(self, forest: Forest) -> bool:
        """Follow the current Forest if that is possible and cheap; otherwise a new series must replace this one."""
        order, catalogue = self._shape
        if (
            self._is_over
            or forest is not self._forest
            or forest.order is not order
            or forest.catalogue is not catalogue
            or _count_overwrites(forest) != self._overwrite_count
            or self.nbytes > MOST_BYTES
        ):
            return False
        return self._pool.scratch.follow(forest)

    @property
    def nbytes(self) -> int:
        """Return the estimated memory of the queries and the scratch."""
        return self._pool.nbytes

    def place(self, request: PlacingRequest, end: float) -> Placement | None:
        """Place the single consumer of a call; return None if there is no room beside the consumers before it.

        The deadline `end` is in processor time of the thread, so that waiting for a processor does not count.

        Raises:
            TraitsNotFoundError, ResourceClassNotFoundError: if the request names an unknown trait or class.
            OutOfTimeError: after the deadline, or after a placed consumer has begun a condition that later requests
                may tolerate.
            SearchTooLargeError: if the search exceeds its memory.
        """
        if self._is_over:
            raise OutOfTimeError
        self._end = end
        for alternative in request.alternatives:
            require_known_names(self._forest, alternative)
        for number, alternative in enumerate(request.alternatives):
            with self._budget.scope():
                self._budget.check()
                match = self._pool.find_first([alternative])
            if match is not None:
                _, candidate = match
                scratch = self._pool.scratch
                self._is_over |= bool(scratch.find_begun_heads(candidate.allocations))
                scratch.place(candidate.allocations)
                (consumer,) = request.consumers
                return make_placement(self._forest, consumer, number, candidate, ())
        return None


def _count_overwrites(forest: Forest) -> int:
    """Return a counter of changes of inventories beyond their used amounts."""
    return sum(columns.overwrite_count for columns in forest.classes.values())
