# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of the service.

All processes keep their values in files of one folder, so that the admin listener can show the sums (multiprocess
mode of prometheus_client). PROMETHEUS_MULTIPROC_DIR names the folder; by default, the first process of the service
creates a temporary folder. See `metrics_folder`.
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
"""The slots of the folder; None if the folder has no room, so that each process counts alone."""

values.ValueClass = values.MutexValue
with suppress(KeyError, OSError):
    slots = Slots(Path(os.environ[FOLDER_VARIABLE]))
    values.ValueClass = values.MultiProcessValue(slots.get_number)  # type: ignore[no-untyped-call]


_LOG = logging.getLogger(__name__)


_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds: from a response of the cache to a timeout of the database."""

_LOAD = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

REQUESTS = Counter(
    "treeclaim_requests",
    "Responses, by method, route and status.",
    ["method", "route", "status"],
)
REQUEST_SECONDS = Histogram(
    "treeclaim_request_seconds",
    "Time from a request's arrival to the beginning of its response.",
    ["method", "route"],
    buckets=_FAST,
)
TOKEN_SECONDS = Histogram(
    "treeclaim_token_seconds",
    "Time to look up a token in memcached or at Keystone.",
    buckets=_FAST,
)
SEARCH_SECONDS = Histogram(
    "treeclaim_search_seconds",
    "Time of a search by phase: feed (reading other workers' writes), the stages of the search, each "
    "without the time of its inputs, write (the response); slow (the whole search in a child process).",
    ["phase"],
    buckets=_FAST,
)
CLAIM_SECONDS = Histogram(
    "treeclaim_claim_seconds",
    "Time of a claim by phase: search (of a group of placements), wait (for the running transaction and a "
    "connection), locks (locking statements with their waits), statements (other statements), commit, "
    "hand_over (to the request's thread). Locks, statements and commit count once for a group.",
    ["phase"],
    buckets=_FAST,
)
CLAIM_GROUPS = Histogram(
    "treeclaim_claim_group_size",
    "Requests that shared a transaction, for transactions of several requests.",
    buckets=(2, 4, 8, 16, 32, 64),
)
CANDIDATES = Counter("treeclaim_candidates", "Candidates returned.")
CONFLICTS = Counter(
    "treeclaim_conflicts", "Responses 409, by route and error code.", ["route", "code"]
)
RETRIES = Counter(
    "treeclaim_transaction_retries",
    "Write transactions repeated because of conflicts.",
)
UNAVAILABLE = Counter(
    "treeclaim_database_failures", "Transactions that failed because the database was down."
)
FOREST_PROVIDERS = Gauge(
    "treeclaim_forest_providers",
    "Resource providers in a worker's Forest.",
    ["worker"],
    multiprocess_mode="livemax",
)
FOREST_CHANGED = Counter(
    "treeclaim_forest_changed_providers",
    "Changed providers, loaded again or with their claims counted.",
)
FOREST_LOAD_SECONDS = Histogram(
    "treeclaim_forest_load_seconds", "Time of a load of the whole inventory.", buckets=_LOAD
)
FOREST_LONGEST_HOLD = Gauge(
    "treeclaim_forest_longest_hold_seconds",
    "CPU time of the longest turn of a thread at a worker's Forest.",
    ["worker"],
    multiprocess_mode="livemax",
)
FOREST_LONG_HOLDS = Counter(
    "treeclaim_forest_long_holds",
    "Turns at a Forest of more than 20 ms of CPU time.",
)
FEED_POSITION = Gauge(
    "treeclaim_feed_position",
    "Commits that a worker's Forest has applied, over all shards of the change feed.",
    ["worker"],
    multiprocess_mode="livemax",
)
HELPER_FAILED_NAME = "treeclaim_helper_failed_timestamp_seconds"

HELPER_FAILED = Gauge(
    HELPER_FAILED_NAME,
    "Time of the last failure of a helper thread, which continues; for the thread log, of the last lost line.",
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
    """Set the metric of the release; each process calls this again after a fork."""
    BUILD.labels(__version__, platform.python_version()).set(1)
    if slots is None or slots.is_hidden:
        _LOG.warning("Metrics of this process are not shown: there is no room for their files")


set_build_info()


failure_listeners.append(lambda thread: HELPER_FAILED.labels(thread).set_to_current_time())


phase_listeners: list[Callable[[str, float, float], None]] = []
"""Called with each phase, its seconds, and the seconds since its end, for traces."""


@cache
def _get_timer(timers: Histogram, name: str) -> Histogram:
    # Cached for a dozen phases, because the lookup of prometheus_client is slow.
    return timers.labels(name)


@contextmanager
def measure_phase(name: str) -> Iterator[None]:
    """Measure a phase of a search, including an abandoned search, which is the longest."""
    stages = Stages(name)
    try:
        yield
    finally:
        observe_stages(SEARCH_SECONDS, stages)


def observe_stages(timers: Histogram, stages: Stages) -> None:
    """End the present stage, and observe the duration of each stage.

    Listeners receive the stages as if they had run one after the other until now.
    """
    stages.stop()
    for name, seconds in stages.seconds.items():
        if name not in stages.reported_elsewhere:
            _get_timer(timers, name).observe(seconds)
    if phase_listeners:
        since_end = sum(stages.seconds.values())
        for name, seconds in stages.seconds.items():
            since_end -= seconds
            for listener in phase_listeners:
                listener(name, seconds, since_end)
