# SPDX-License-Identifier: Apache-2.0
"""Measures capacity, usage and fits of flavors periodically (contract page 99, section 6).

The listener has a Forest that follows the change feed, and uses no worker. Child processes with the lowest priority
count fits. Without changes a round costs one small query of the database.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from treeclaim.forest.listing.totals import InventoryAmounts, Totals, sum_by_aggregate
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.forest.table.held import HeldUnits, include_consumption
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.errors import StoreUnavailableError, TreeclaimError
from treeclaim.model.request import CandidateRequest
from treeclaim.replica.answer_cache import WholeAnswer
from treeclaim.replica.child_process import Child
from treeclaim.replica.following import Follower
from treeclaim.replica.question import Arrival
from treeclaim.replica.questions import capacity_question
from treeclaim.store import Store
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.holds import load_held_sums

_LOG = logging.getLogger(__name__)

_ROUND_SECONDS = 10.0
"""Seconds from the start of one round to the start of the next."""

_COUNTING_SECONDS = 10.0
"""Seconds for counting the fits of all flavors. On an idle machine, values are therefore at most 20 s old."""

_OLDEST_SECONDS = 30.0
"""Age above which values are not shown: a graph with a gap is correct, a straight line is not."""

_SHARE_OF_TIME = 0.8
"""Share of a flavor's seconds for counting; the remainder is for the transfer of the result."""


@dataclass(frozen=True, slots=True)
class Fits:
    """Numbers of consumers of a flavor that fit: `now`, and `when_empty` without allocations."""

    now: int
    when_empty: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The results of a round, at a time of the monotonic clock.

    These are sums over all providers, sums by UUID of aggregates with inventories, and fits by name of flavors.
    """

    at: float
    cloud: Totals = field(default_factory=dict)
    aggregates: Mapping[str, Totals] = field(default_factory=dict)
    fits: Mapping[str, Fits] = field(default_factory=dict)


class Meter:
    """Measures in a background thread."""

    def __init__(
        self,
        store: Store,
        aggregates: Sequence[str],
        flavors: Mapping[str, CandidateRequest],
        most_bytes: int | None,
    ) -> None:
        """Prepare to measure these aggregates, by UUID, and flavors, by name, with `most_bytes` of memory for each."""
        self._store = store
        self._follower = Follower(store, is_worker=False)
        self._aggregates = aggregates
        self._flavors = flavors
        self._most_bytes = most_bytes
        self._latest_measurement: Measurement | None = None
        self._version = -1

    def start(self) -> None:
        """Start the thread."""
        start_helper_thread("capacity", self._measure_repeatedly)

    def get_latest(self) -> Measurement | None:
        """Return the last measurement; None if it is missing or too old."""
        measurement = self._latest_measurement
        if measurement is None or time.monotonic() - measurement.at > _OLDEST_SECONDS:
            return None
        return measurement

    def _measure_repeatedly(self) -> None:
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
        measurement, forest = self._latest_measurement, self._follower.forest
        if measurement is not None and self._version == self._follower.version:
            self._latest_measurement = replace(measurement, at=now)
            return
        held_units = self._store.read(self._read_held_units)
        forest = self._follower.forest
        held_units = include_consumption(forest, held_units)
        rows = forest.living_rows
        self._latest_measurement = Measurement(
            now,
            InventoryAmounts(forest, rows, held_units).totals(),
            sum_by_aggregate(forest, rows, self._aggregates, held_units),
            self._count_fits(),
        )
        self._version = self._follower.version

    def _read_held_units(self, transaction: ReadTransaction) -> HeldUnits:
        """Update the Forest to a snapshot, and return the held amounts in it."""
        self._follower.catch_up_within(transaction)
        return load_held_sums(transaction)

    def _count_fits(self) -> dict[str, Fits]:
        counts: dict[str, Fits] = {}
        end = time.monotonic() + _COUNTING_SECONDS
        for number, (name, request) in enumerate(self._flavors.items()):
            # The remaining flavors share the remaining seconds.
            seconds = (end - time.monotonic()) / (len(self._flavors) - number)
            try:
                fits = self._count_flavor(name, request, seconds)
            except (TreeclaimError, OSError) as error:
                _LOG.warning("How many %r fit is unknown: %s", name, error)
                continue
            if fits is not None:
                counts[name] = fits
        return counts

    def _count_flavor(self, name: str, request: CandidateRequest, seconds: float) -> Fits | None:
        """Count the fits of one flavor; None if the time was too short."""
        arrival = Arrival.now(max(seconds, 0.0), most_bytes=self._most_bytes)
        limits = CapacityLimits(None, 0, arrival.begin + _SHARE_OF_TIME * seconds)
        question = capacity_question({name: request}, limits)
        child = Child(question, self._follower.forest, arrival)
        try:
            answer = child.receive_first()
        finally:
            child.end()
        if not isinstance(answer, WholeAnswer):
            raise TypeError("the counts of a flavor are a long answer")
        capacity = orjson.loads(b"".join(answer.pieces))["capacity"][name]
        if not capacity["complete"]:
            _LOG.warning(
                "How many %r fit is unknown: counting takes more than %.1f s", name, seconds
            )
            return None
        return Fits(capacity["fits"], capacity["when_empty"])
