# SPDX-License-Identifier: Apache-2.0
"""Consumers of separate calls, placed one after the other in a copy of the Forest that follows it.

Each consumer is placed beside the consumers before it, as if these were written already. Preparing a query takes
much longer than placing one consumer. All consumers with equal requests therefore share a query, which is kept while
only used amounts change. Before the next consumers, the used amounts are compared with the Forest, and
only the trees that differ are searched again. A consumer that was placed and then written makes no difference.
"""

from time import thread_time

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.placing.candidate import placement_of
from treeclaim.forest.placing.room import QueryPool
from treeclaim.forest.placing.scratch import Scratch
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.placing import Placement, PlacingRequest

MOST_BYTES = 32_000_000
"""Bytes of a series: a dozen flavors on 13,000 hosts. Beyond that its queries are made anew."""


class OutOfTimeError(TreeclaimError):
    """The time for which a series may be used is over."""


class Series:
    """Places consumers that no rule concerns, and that neither draw from holds nor are holds."""

    def __init__(self, forest: Forest, most_bytes: int) -> None:
        """Begin with the amounts that are used now.

        Args:
            forest: The Forest; it is not changed.
            most_bytes: The memory of a search.
        """
        self._forest = forest
        self._end = 0.0
        self._budget = Budget(None, most_bytes, interrupted=self._check)
        self._pool = QueryPool(Scratch(forest), self._budget, MOST_BYTES)
        self._is_over = False
        self._shape = forest.order, forest.catalogue
        self._refreshed = _refreshed(forest)

    def _check(self) -> None:
        if thread_time() > self._end:
            raise OutOfTimeError

    def may_follow(self, forest: Forest) -> bool:
        """Follow the Forest as it is now, if that is possible and worth it.

        Returns:
            Whether consumers can be placed now; else a new series is to be made.
        """
        order, catalogue = self._shape
        if (
            self._is_over
            or forest is not self._forest
            or forest.order is not order
            or forest.catalogue is not catalogue
            or _refreshed(forest) != self._refreshed
            or self.nbytes > MOST_BYTES
        ):
            return False
        return self._pool.scratch.follow(forest)

    @property
    def nbytes(self) -> int:
        """Return the memory of the queries, about."""
        return self._pool.nbytes

    def place(self, request: PlacingRequest, end: float) -> Placement | None:
        """Find a place for the single consumer of a call, and take the room.

        Args:
            request: Its request.
            end: End of its time, in the thread's processor time, so that waiting for a processor
                does not count.

        Returns:
            None if there is no place beside the consumers before it.

        Raises:
            TraitsNotFoundError, ResourceClassNotFoundError: if the request names what does not exist.
            OutOfTimeError: if its time ends, or a condition has begun whose keys later calls may tolerate.
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
                place = self._pool.first([alternative])
            if place is not None:
                _, candidate = place
                scratch = self._pool.scratch
                self._is_over |= bool(scratch.heads_begun_by(candidate.allocations))
                scratch.place(candidate.allocations)
                (consumer,) = request.consumers
                return placement_of(self._forest, consumer, number, candidate, ())
        return None


def _refreshed(forest: Forest) -> int:
    """Return how often more than what is used of an inventory may have changed."""
    return sum(columns.refreshed for columns in forest.classes.values())
