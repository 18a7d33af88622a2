# SPDX-License-Identifier: Apache-2.0
"""Resource usage of the service's processes, read from /proc at each scrape."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from treeclaim.admin.census import TakeCensus
from treeclaim.metrics_folder import FOLDER_VARIABLE

_FILE = re.compile(r"gauge_live\w+_(\d+)\.db")
_UTIME, _STIME, _THREADS, _RSS = 11, 12, 17, 21
"""Positions in /proc/PID/stat of what comes after the name, which may have any characters."""

_LABELS = ("worker", "program")
_PROGRAM = "treeclaim"


@dataclass(frozen=True, slots=True)
class _Process:
    pid: str
    cpu_seconds: float
    resident_bytes: int
    threads: int
    descriptors: int


class ProcessCollector(Collector):
    """Memory, CPU time, threads and descriptors of each process, by process id.

    The names are those that Prometheus' own clients use for a single process.
    """

    def __init__(self, others: Sequence[int] = ()) -> None:
        """Begin.

        Args:
            others: Processes of the service that count nothing, and so have no files of metrics.
        """
        self._others = [str(pid) for pid in others]

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics of all running processes."""
        cpu = CounterMetricFamily(
            "process_cpu_seconds", "CPU time in user and system mode.", labels=_LABELS
        )
        memory = GaugeMetricFamily(
            "process_resident_memory_bytes", "Resident memory.", labels=_LABELS
        )
        threads = GaugeMetricFamily("process_threads", "Threads.", labels=_LABELS)
        descriptors = GaugeMetricFamily(
            "process_open_fds", "Open file descriptors.", labels=_LABELS
        )
        for process in _processes(self._others):
            labels = [process.pid, _PROGRAM]
            cpu.add_metric(labels, process.cpu_seconds)
            memory.add_metric(labels, process.resident_bytes)
            threads.add_metric(labels, process.threads)
            descriptors.add_metric(labels, process.descriptors)
        return cpu, memory, threads, descriptors


class WorkerCollector(Collector):
    """How many workers answer, have stalled, and count without being shown."""

    def __init__(self, census: TakeCensus) -> None:
        self._census = census

    def collect(self) -> Iterable[Metric]:
        """Yield the numbers; nothing if they are unknown."""
        census = self._census()
        if census is None:
            return
        every = {*census.answering, *census.silent}
        hidden = every - {int(pid) for pid in _counting()}
        workers = GaugeMetricFamily(
            "treeclaim_workers",
            "Workers that answer, that have stalled, and those of either kind whose metrics are not shown.",
            labels=["state"],
        )
        workers.add_metric(["answering"], len(census.answering))
        workers.add_metric(["silent"], len(census.silent))
        workers.add_metric(["hidden"], len(hidden))
        yield workers


def _counting() -> set[str]:
    """Return the processes that have metrics in the common folder."""
    names = (path.name for path in Path(os.environ[FOLDER_VARIABLE]).glob("gauge_live*.db"))
    return {match[1] for name in names if (match := _FILE.fullmatch(name))}


def _processes(others: Sequence[str]) -> Iterator[_Process]:
    """Yield the running processes that have metrics in the common folder, and others."""
    for pid in sorted(_counting().union(others)):
        try:
            yield _read(pid)
        except OSError:
            # It has ended, or belongs to somebody else.
            continue


def _read(pid: str) -> _Process:
    folder = Path("/proc") / pid
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[_UTIME]) + int(fields[_STIME])
    return _Process(
        pid,
        ticks / os.sysconf("SC_CLK_TCK"),
        int(fields[_RSS]) * os.sysconf("SC_PAGE_SIZE"),
        int(fields[_THREADS]),
        len(list((folder / "fd").iterdir())),
    )
