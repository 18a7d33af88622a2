# SPDX-License-Identifier: Apache-2.0
"""Measures capacity, usage and what still fits, again and again (contract page 99, section 6).

The listener has a Forest of its own, which follows the change feed, so a round costs the database one
small query where nothing changed, and no worker anything. A scrape only shows what was measured last.
How many fit is counted by children with the lowest priority.

The flavors that are counted come from a file of queries.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.request.bodies import Body, BodyReader
from treeclaim.api.resources.candidates.parameters import request_of
from treeclaim.api.resources.placing.bodies import NamedQueries
from treeclaim.forest.listing.totals import InventoryAmounts, Totals, totals_of_aggregates
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.forest.table.held import HeldColumns, held_with_consumed
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.errors import StoreUnavailableError, TreeclaimError
from treeclaim.model.microversions import NEWEST
from treeclaim.model.query.errors import InvalidQueryError
from treeclaim.model.request import CandidateRequest
from treeclaim.replica.child_process import Child
from treeclaim.replica.following import Follower
from treeclaim.replica.kept import KeptAnswer
from treeclaim.replica.question import Arrival
from treeclaim.replica.questions import capacity_question
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import load_held_sums

_LOG = logging.getLogger(__name__)

_ROUND_SECONDS = 10.0
"""Seconds from the start of one round to the start of the next."""

_COUNTING_SECONDS = 10.0
"""Seconds for counting what fits, for all flavors together. So values are at most 20 s old when the next ones
come, and some seconds more on a busy machine."""

_OLDEST_SECONDS = 30.0
"""Older values are not shown: a gap in a graph is true, a straight line is not."""

_SHARE_OF_TIME = 0.8
"""Share of a flavor's seconds in which it is counted: the rest is for reporting the number."""

_MOST_BYTES = 1 << 20
"""Bytes of the file: 256 queries of 4 kB each."""


class FlavorFile(Body):
    """The queries that are counted, by names of flavors."""

    requests: NamedQueries


_FILE = BodyReader(FlavorFile)


@dataclass(frozen=True, slots=True)
class Fits:
    """Consumers of a flavor that fit: `now`, and `when_empty`, if nothing were allocated."""

    now: int
    when_empty: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures of a round.

    Attributes:
        at: As of when, of the monotonic clock.
        cloud: Sums over all providers.
        aggregates: Sums by uuid of an aggregate, of those that have any.
        fits: By name of the flavor, of those that could be counted.
    """

    at: float
    cloud: Totals = field(default_factory=dict)
    aggregates: Mapping[str, Totals] = field(default_factory=dict)
    fits: Mapping[str, Fits] = field(default_factory=dict)


class Meter:
    """Measures in a thread of its own."""

    def __init__(
        self,
        store: Store,
        aggregates: Sequence[str],
        flavors: Mapping[str, CandidateRequest],
        most_bytes: int | None,
        oldest_seconds: float = _OLDEST_SECONDS,
    ) -> None:
        """Say what is to be measured.

        Args:
            store: The database of the service.
            aggregates: Uuids of those whose sums are wanted.
            flavors: Queries of the flavors to be counted, by name.
            most_bytes: Memory that counting a flavor may hold.
            oldest_seconds: Age from which on values are not shown.
        """
        self._store = store
        self._follower = Follower(store, is_worker=False)
        self._aggregates = aggregates
        self._flavors = flavors
        self._most_bytes = most_bytes
        self._oldest_seconds = oldest_seconds
        self._latest: Measurement | None = None
        self._version = -1

    def start(self) -> None:
        """Begin to measure."""
        start_helper_thread("capacity", self._go_on)

    def latest(self) -> Measurement | None:
        """Return what was measured last, unless it is too old."""
        latest = self._latest
        if latest is None or time.monotonic() - latest.at > self._oldest_seconds:
            return None
        return latest

    def _go_on(self) -> None:
        while True:
            begin = time.monotonic()
            try:
                self.measure()
            except StoreUnavailableError as error:
                _LOG.warning("No metrics of resources: %s", error.for_operators)
            time.sleep(max(0.0, begin + _ROUND_SECONDS - time.monotonic()))

    def measure(self) -> None:
        """Measure once.

        Raises:
            StoreUnavailableError: if the database does not answer.
        """
        now = time.monotonic()
        self._follower.catch_up(now)
        latest, forest = self._latest, self._follower.forest
        if latest is not None and self._version == self._follower.version:
            self._latest = replace(latest, at=now)
            return
        held = self._store.read(self._read_held)
        forest = self._follower.forest
        held = held_with_consumed(forest, held)
        rows = forest.living_rows
        self._latest = Measurement(
            now,
            InventoryAmounts(forest, rows, held).totals(),
            totals_of_aggregates(forest, rows, self._aggregates, held),
            self._count_fits(),
        )
        self._version = self._follower.version

    def _read_held(self, transaction: ReadTransaction) -> HeldColumns:
        """Bring the Forest to a snapshot, and return what holds have in it."""
        self._follower.catch_up_within(transaction)
        return HeldColumns.of(load_held_sums(transaction))

    def _count_fits(self) -> dict[str, Fits]:
        counts: dict[str, Fits] = {}
        end = time.monotonic() + _COUNTING_SECONDS
        for number, (name, request) in enumerate(self._flavors.items()):
            # A flavor that takes all its time leaves the others theirs.
            seconds = (end - time.monotonic()) / (len(self._flavors) - number)
            try:
                fits = self._fits(name, request, seconds)
            except (TreeclaimError, OSError) as error:
                _LOG.warning("How many %r fit is unknown: %s", name, error)
                continue
            if fits is not None:
                counts[name] = fits
        return counts

    def _fits(self, name: str, request: CandidateRequest, seconds: float) -> Fits | None:
        """Count one flavor; None if the time was too short for it."""
        arrival = Arrival.now(max(seconds, 0.0), most_bytes=self._most_bytes)
        fitting = CapacityLimits(None, 0, arrival.begin + _SHARE_OF_TIME * seconds)
        question = capacity_question({name: request}, fitting)
        child = Child(question, self._follower.forest, arrival)
        try:
            answer = child.first()
        finally:
            child.end()
        if not isinstance(answer, KeptAnswer):
            raise TypeError("some numbers are not a long answer")
        numbers = orjson.loads(b"".join(answer.pieces))["capacity"][name]
        if not numbers["complete"]:
            _LOG.warning(
                "How many %r fit is unknown: counting takes more than %.1f s", name, seconds
            )
            return None
        return Fits(numbers["fits"], numbers["when_empty"])


class FlavorFileError(Exception):
    """The file cannot be used; the message says why, and names it."""


def flavors_in(path: str, most_groups: int) -> dict[str, CandidateRequest]:
    """Read the queries of a file: `{"requests": {NAME: QUERY, …}}`, as page 98, section 5, has them.

    Args:
        path: The path of the file.
        most_groups: Most request groups of a query.

    Raises:
        FlavorFileError: if it is not there, or anything in it is wrong.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise FlavorFileError(f"{path}: it is longer than {_MOST_BYTES} bytes")
        document: Any = orjson.loads(text)
    except (OSError, ValueError) as error:
        raise FlavorFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        flavors: Any = _FILE.read(document)
    except ApiError as error:
        raise FlavorFileError(f"{path}: {error.detail}") from error
    return {
        name: _request(f"{path}: requests.{name}", query, most_groups)
        for name, query in flavors.requests.items()
    }


def _request(where: str, query: str, most_groups: int) -> CandidateRequest:
    try:
        request = request_of(query, NEWEST, most_groups)
    except InvalidQueryError as error:
        raise FlavorFileError(f"{where}: {error}") from error
    if request.order is not None and request.order.mix_names:
        # Mixes change at any time, and what is counted here would not.
        raise FlavorFileError(f"{where}: the order of a flavor that is measured names no mix")
    return request
