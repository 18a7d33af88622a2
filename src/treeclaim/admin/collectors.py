# SPDX-License-Identifier: Apache-2.0
"""Metrics that the admin listener measures at each scrape, besides the counters of the workers."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from treeclaim import metrics
from treeclaim.admin import TakeCensus
from treeclaim.admin.capacity import Meter
from treeclaim.admin.certificates import Expiry
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import Store

_LOG = logging.getLogger(__name__)

Collect = Callable[[], Iterable[Metric]]


class FunctionCollector(Collector):
    """Adapts a function to the collector interface of prometheus_client."""

    def __init__(self, collect: Collect) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of the function."""
        return self._collect()


_MOST_PAIRS = 2_000
"""Most pairs of part and resource class, each with six values: 12,000 samples, a tenth of the number that Prometheus
stores easily from one target. Clients can create any number of classes and memberships."""

_VALUES = {
    "capacity": "(total - reserved) x allocation_ratio, of whole units.",
    "reserved": "Reserved amount.",
    "used": "Amount of all claims.",
    "held": "Amount of holds, a part of used.",
    "free": "Amount that claims can still use, summed over the providers.",
    "largest_free": "Largest free amount of a single provider.",
}

_FITS = {
    "": "Consumers that still fit.",
    "_when_empty": "Consumers that would fit if nothing were allocated.",
}

_Sums = tuple[list[str], str, Mapping[str, int]]
"""The labels of the cloud or an aggregate, a resource class, and its values."""

_UTIME, _STIME, _THREADS, _RSS = 11, 12, 17, 21
"""Positions in /proc/PID/stat after the program's name, which may contain any characters."""

_LABELS = ("worker", "program")
_PROGRAM = "treeclaim"


def collect_expiries(expiries: Sequence[Expiry]) -> Iterator[Metric]:
    """Yield the expiries of the certificates in use."""
    family = GaugeMetricFamily(
        "treeclaim_certificate_expiry_timestamp_seconds",
        "Expiry of a certificate in use, in seconds since 1970: the first expiry in a chain, the last "
        "expiry of authorities.",
        labels=["use"],
    )
    for expiry in expiries:
        family.add_metric([expiry.use], expiry.at)
    yield family


def collect_feed(store: Store) -> Iterator[Metric]:
    """Yield the end of the change feed; each worker exports its position."""
    try:
        position = sum(store.load_cursor().positions)
    except StoreUnavailableError as error:
        _LOG.warning("No metrics of the change feed: %s", error.for_operators)
        return
    yield GaugeMetricFamily(
        "treeclaim_feed_committed",
        "Commits in the change feed, over all shards. A worker's lag is the difference to its "
        "treeclaim_feed_position; the worker catches up before each read.",
        value=position,
    )


def collect_resources(meter: Meter) -> Iterator[Metric]:
    """Yield the last measured sums and fits (contract page 99, section 6)."""
    measurement = meter.get_latest()
    if measurement is None:
        return
    cloud_sums: list[_Sums] = [([], name, sums) for name, sums in measurement.cloud.items()]
    aggregate_sums: list[_Sums] = [
        ([uuid], name, sums)
        for uuid, totals in measurement.aggregates.items()
        for name, sums in totals.items()
    ]
    yield from _make_families("treeclaim_resource", [], cloud_sums[:_MOST_PAIRS])
    if measurement.aggregates:
        shown_sums = aggregate_sums[: max(_MOST_PAIRS - len(cloud_sums), 0)]
        yield from _make_families("treeclaim_aggregate_resource", ["aggregate"], shown_sums)
    yield GaugeMetricFamily(
        "treeclaim_resource_metrics_left_out",
        f"Classes of the cloud and of aggregates beyond {_MOST_PAIRS}, which are not shown.",
        value=max(len(cloud_sums) + len(aggregate_sums) - _MOST_PAIRS, 0),
    )
    for kind, text in _FITS.items() if measurement.fits else ():
        family = GaugeMetricFamily(f"treeclaim_fits{kind}", text, labels=["flavor"])
        for name, fits in measurement.fits.items():
            family.add_metric([name], fits.when_empty if kind else fits.now)
        yield family


def _make_families(
    prefix: str, labels: list[str], shown_sums: Sequence[_Sums]
) -> Iterator[Metric]:
    for value, text in _VALUES.items():
        family = GaugeMetricFamily(f"{prefix}_{value}", text, labels=[*labels, "resource_class"])
        for parts, name, sums in shown_sums:
            family.add_metric([*parts, name], sums[value])
        yield family


def collect_processes(pids_without_files: Sequence[int] = ()) -> Iterator[Metric]:
    """Yield CPU time, memory, threads and descriptors of each process that has files of metrics, or is listed.

    The names are those of Prometheus' client libraries for a single process.
    """
    cpu = CounterMetricFamily(
        "process_cpu_seconds", "CPU time in user and system mode.", labels=_LABELS
    )
    memory = GaugeMetricFamily("process_resident_memory_bytes", "Resident memory.", labels=_LABELS)
    threads = GaugeMetricFamily("process_threads", "Threads.", labels=_LABELS)
    descriptors = GaugeMetricFamily("process_open_fds", "Open file descriptors.", labels=_LABELS)
    for pid in sorted(_find_pids_with_files().union(map(str, pids_without_files))):
        folder = Path("/proc") / pid
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            descriptor_count = len(list((folder / "fd").iterdir()))
        except OSError:
            # The process has ended, or belongs to another user.
            continue
        cpu_ticks = int(fields[_UTIME]) + int(fields[_STIME])
        labels = [pid, _PROGRAM]
        cpu.add_metric(labels, cpu_ticks / os.sysconf("SC_CLK_TCK"))
        memory.add_metric(labels, int(fields[_RSS]) * os.sysconf("SC_PAGE_SIZE"))
        threads.add_metric(labels, int(fields[_THREADS]))
        descriptors.add_metric(labels, descriptor_count)
    yield from (cpu, memory, threads, descriptors)


def collect_workers(take_census: TakeCensus) -> Iterator[Metric]:
    """Yield the numbers of workers by state."""
    census = take_census()
    worker_pids = {*census.answering_pids, *census.silent_pids}
    hidden_pids = worker_pids - {int(pid) for pid in _find_pids_with_files()}
    workers = GaugeMetricFamily(
        "treeclaim_workers",
        "Workers by state: answering; silent (stalled); hidden (answering or silent, without room for their metrics); "
        "reading (have just read the inventory).",
        labels=["state"],
    )
    workers.add_metric(["answering"], len(census.answering_pids))
    workers.add_metric(["silent"], len(census.silent_pids))
    workers.add_metric(["hidden"], len(hidden_pids))
    workers.add_metric(["reading"], len(census.reading_pids))
    yield workers
    yield GaugeMetricFamily(
        "treeclaim_reload_refused",
        "1 if the last reload was refused, so that the service runs unchanged.",
        value=float(census.is_reload_refused),
    )


def _find_pids_with_files() -> set[str]:
    return set() if metrics.slots is None else metrics.slots.find_living()
