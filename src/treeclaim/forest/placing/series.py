# SPDX-License-Identifier: Apache-2.0
"""Consumers of separate calls, placed one after the other in a picture that follows the Forest.

Each is placed beside those before it, as if these were written already. Starting a search
takes much longer than placing a consumer. So it is done once for all that want the same, and kept
as long as only used amounts change: before the next consumers, what is used is compared with
the Forest where either has changed, and only the trees that differ are looked at again, by the
searches that come next. What was placed and then written does not differ.
"""

from collections.abc import Sequence
from time import thread_time

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.bounds.cache import size_of
from treeclaim.forest.domains.filters import require_known_names
from treeclaim.forest.placing.candidate import Candidate, placement_of
from treeclaim.forest.placing.queries import Query, query_of
from treeclaim.forest.placing.room import Holds, Room
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.errors import TreeclaimError
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.extension.placing import Placement, PlacingRequest
from treeclaim.model.request import CandidateRequest

MOST_BYTES = 32_000_000
"""Bytes of a series: a dozen flavors on 13,000 hosts. Beyond that its queries are made anew."""


class OutOfTimeError(TreeclaimError):
    """The time for which a series may be used is over."""


class Series:
    """Places consumers that no rule concerns."""

    def __init__(self, forest: Forest, most_bytes: int) -> None:
        """Begin with what is used now.

        Args:
            forest: Where to search; it is not changed.
            most_bytes: What a search may hold.
        """
        self._forest = forest
        self._end = 0.0
        self._budget = Budget(None, most_bytes, interrupted=self._check)
        self._room = Room(forest, self._budget)
        self._queries: dict[CandidateRequest, Query] = {}
        """Queries that are kept: those of consumers that draw from no hold."""
        self._is_over = False
        self._mixes: set[Mix] = set()
        self._query_bytes = 0
        self._everywhere = np.ones(len(forest.order.roots), dtype=np.bool_)
        self._shape = forest.order, forest.catalogue
        self._refreshed = _refreshed(forest)

    def _check(self) -> None:
        if thread_time() > self._end:
            raise OutOfTimeError

    def begin(self, held: HeldAmounts) -> None:
        """Let consumers draw from holds, which have so much at the moment that is followed."""
        self._room.begin(held)

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
        return self._room.everybody.follow(forest)

    @property
    def nbytes(self) -> int:
        """Return the bytes that this takes, about."""
        return self._room.everybody.nbytes + self._query_bytes

    def place(self, request: PlacingRequest, end: float) -> Placement | None:
        """Find a place for the single consumer of a call, and take the room.

        Args:
            request: What it wants.
            end: When the time for that is over, in the thread's processor time: a placement that had to
                wait for a processor takes no longer than it did.

        Returns:
            None if there is none beside those placed before.

        Raises:
            TraitsNotFoundError, ResourceClassNotFoundError: if it names what does not exist.
            OutOfTimeError: if it takes too long, or a condition has begun whose keys later calls may tolerate.
            SearchTooLargeError: if it holds too much.
        """
        if self._is_over:
            raise OutOfTimeError
        self._end = end
        for alternative in request.alternatives:
            require_known_names(self._forest, alternative)
        for number, alternative in enumerate(request.alternatives):
            with self._budget.scope():
                self._budget.check()
                candidate = self._first(
                    alternative, request.from_holds, is_hold=request.hold is not None
                )
            if candidate is not None:
                self._is_over |= bool(self._room.everybody.heads_begun_by(candidate.allocations))
                self._room.take(candidate.allocations, request.from_holds)
                (consumer,) = request.consumers
                return placement_of(self._forest, consumer, number, candidate, ())
        return None

    def _first(
        self, request: CandidateRequest, holds: Holds, *, is_hold: bool
    ) -> Candidate | None:
        if holds or is_hold:
            # What holds have is read only for these consumers, and so are the queries.
            drawing = self._room.query(request, holds, is_hold=is_hold)
            return drawing.first(self._everywhere, _any_trees)
        query = self._queries.get(request)
        if query is None:
            if self.nbytes > MOST_BYTES:
                self._queries.clear()
                self._mixes.clear()
                self._query_bytes = 0
            scratch = self._room.everybody
            scratch.copy_used(request.classes & scratch.forest.catalogue.resource_classes.keys())
            query = self._queries[request] = query_of(scratch, request, self._budget)
            self._query_bytes += query.nbytes + self._bytes_of_mixes(request)
        before = query.nbytes
        candidate = query.first(self._everywhere, _any_trees)
        self._query_bytes += query.nbytes - before
        return candidate

    def _bytes_of_mixes(self, request: CandidateRequest) -> int:
        """Return the bytes of the mixes of a request that no query before it has."""
        new = set(() if request.order is None else request.order.mixes) - self._mixes
        self._mixes |= new
        return sum(map(size_of, new))


def _refreshed(forest: Forest) -> int:
    """Return how often more than what is used of an inventory may have changed."""
    return sum(columns.refreshed for columns in forest.classes.values())


def _any_trees(trees: Sequence[int]) -> bool:
    del trees
    return True
