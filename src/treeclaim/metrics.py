# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics: counters and timers of the service.

All processes keep their values in files of one folder, so that the admin listener, which is another process, can
show their sums (prometheus_client's multiprocess mode). PROMETHEUS_MULTIPROC_DIR names the folder. If it is not set,
the first process of the service creates a temporary folder, which its children inherit. See `metrics_folder`.
"""

import logging
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from treeclaim import __version__
from treeclaim.helper_threads import failure_listeners
from treeclaim.metrics_folder import FOLDER_VARIABLE, Slots, provide_folder
from treeclaim.model.timing import Stages

# The library reads the environment when it is imported.
provide_folder()

from prometheus_client import Counter, Gauge, Histogram, values  # noqa: E402 - see above

slots: Slots | None = None
"""The slots of the folder; None if the folder has no room, and each process counts alone."""

values.ValueClass = values.MutexValue
with suppress(KeyError, OSError):
    slots = Slots(Path(os.environ[FOLDER_VARIABLE]))
    values.ValueClass = values.MultiProcessValue(slots.own_number)  # type: ignore[no-untyped-call]


_LOG = logging.getLogger(__name__)


_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: from an answer from memory to a database that does not answer."""

_LOAD = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

REQUESTS = Counter(
    "treeclaim_requests",
    "Requests answered, by method, route and status.",
    ["method", "route", "status"],
)
REQUEST_SECONDS = Histogram(
    "treeclaim_request_seconds",
    "Time from a request's arrival to the beginning of its answer.",
    ["method", "route"],
    buckets=_FAST,
)
TOKEN_SECONDS = Histogram(
    "treeclaim_token_seconds",
    "Time of looking up a token in memcached or at the identity service.",
    buckets=_FAST,
)
SEARCH_SECONDS = Histogram(
    "treeclaim_search_seconds",
    "Time of a question to the inventory by phase: feed (catching up with the database), the stages of "
    "the search, each without those from which it draws, write (the answer); slow (all that a child "
    "answered).",
    ["phase"],
    buckets=_FAST,
)
CLAIM_SECONDS = Histogram(
    "treeclaim_claim_seconds",
    "Time of a claim by phase: search (where placements are found together), wait (for the transaction "
    "under way, and a connection), locks (statements that take them, waits included), statements (the "
    "others), commit, hand_over (from there to the request's own thread); locks, statements and commit "
    "once for the claims of a group.",
    ["phase"],
    buckets=_FAST,
)
CLAIM_GROUPS = Histogram(
    "treeclaim_claim_group_size",
    "Requests whose claims were in one transaction, where they were several.",
    buckets=(2, 4, 8, 16, 32, 64),
)
CANDIDATES = Counter("treeclaim_candidates", "Candidates returned.")
CONFLICTS = Counter(
    "treeclaim_conflicts", "Requests answered by 409, by error code.", ["route", "code"]
)
RETRIES = Counter(
    "treeclaim_transaction_retries",
    "Write transactions that were run again because they met others.",
)
UNAVAILABLE = Counter(
    "treeclaim_database_failures", "Transactions that failed because the database was away."
)
FOREST_PROVIDERS = Gauge(
    "treeclaim_forest_providers",
    "Resource providers in a worker's Forest.",
    ["worker"],
    multiprocess_mode="livemax",
)
FOREST_CHANGED = Counter(
    "treeclaim_forest_changed_providers",
    "Providers that changed: loaded again, or their claims counted.",
)
FOREST_LOAD_SECONDS = Histogram(
    "treeclaim_forest_load_seconds", "Time of loading everything.", buckets=_LOAD
)
FOREST_LONGEST_HOLD = Gauge(
    "treeclaim_forest_longest_hold_seconds",
    "Processor time of the longest turn that a thread had at a worker's Forest.",
    ["worker"],
    multiprocess_mode="livemax",
)
FOREST_LONG_HOLDS = Counter(
    "treeclaim_forest_long_holds",
    "Turns at a Forest that took more than 20 ms of processor time.",
)
FEED_POSITION = Gauge(
    "treeclaim_feed_position",
    "Commits that a worker's Forest has seen, over all shards of the change feed.",
    ["worker"],
    multiprocess_mode="livemax",
)
HELPER_FAILED_NAME = "treeclaim_helper_failed_timestamp_seconds"

HELPER_FAILED = Gauge(
    HELPER_FAILED_NAME,
    "When a thread beside those of requests failed last; it went on. The thread log: when lines were lost.",
    ["thread"],
    multiprocess_mode="livemax",
)
BUILD = Gauge(
    "treeclaim_build_info",
    "Always 1; the labels are the versions of the release and of Python.",
    ["version", "python"],
    multiprocess_mode="livemax",
)


def set_build_info() -> None:
    """Set the metric of the release; after a fork, each process sets it again."""
    BUILD.labels(__version__, platform.python_version()).set(1)
    if slots is None or slots.is_hidden:
        _LOG.warning("Metrics of this process are not shown: there is no room for their files")


set_build_info()


failure_listeners.append(lambda thread: HELPER_FAILED.labels(thread).set_to_current_time())


phase_listeners: list[Callable[[str, float, float], None]] = []
"""Called with each phase, its seconds, and the seconds since its end, for traces."""


@cache
def _timer_of(timers: Histogram, name: str) -> Histogram:
    """Return the timer of one of a dozen phases; the library's own lookup is slow."""
    return timers.labels(name)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Measure one phase of a search, also if it raises: abandoned searches are the longest."""
    stages = Stages(name)
    try:
        yield
    finally:
        observe_stages(SEARCH_SECONDS, stages)


def observe_stages(timers: Histogram, stages: Stages) -> None:
    """Observe the duration of each stage; the present stage is the last.

    Listeners receive the stages as if they had run one after the other and ended now.
    """
    stages.stop()
    for name, seconds in stages.seconds.items():
        if name not in stages.reported_elsewhere:
            _timer_of(timers, name).observe(seconds)
    if phase_listeners:
        passed = sum(stages.seconds.values())
        for name, seconds in stages.seconds.items():
            passed -= seconds
            for listener in phase_listeners:
                listener(name, seconds, passed)
