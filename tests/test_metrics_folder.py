# SPDX-License-Identifier: Apache-2.0
"""The metrics of all processes of a folder add up, whenever processes end, and kill no process."""

import os
import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from treeclaim.metrics_folder import FOLDER_VARIABLE, Slots

COUNTS = """
import os, resource, sys
{before}
from treeclaim import metrics

def count():
    metrics.RETRIES.inc()
    metrics.FOREST_LOAD_SECONDS.observe(1)
    metrics.FOREST_PROVIDERS.labels(str(os.getpid())).set(7)

count()
{after}
"""

FORKS = """
from contextlib import suppress
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        for _ in range(100):
            count()
        os._exit(0)
    children.append(pid)
for _ in range(100):
    count()
for pid in children:
    os.waitpid(pid, 0)
"""

WAITS = "print(os.getpid(), flush=True); sys.stdin.read()"

NO_ROOM = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The shared folder of metrics."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def process(before="", after=""):
    """Start a process that counts once, with further code before and after."""
    text = COUNTS.format(before=before, after=after)
    pipe = subprocess.PIPE
    # Not to the log of the tests: a process without room cannot write to a file.
    return subprocess.Popen(
        [sys.executable, "-c", text], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def run(before="", after=""):
    """Run such a process until its end."""
    with process(before, after) as started:
        started.communicate()
    assert started.returncode == 0


def sums(folder):
    """Return the values of all samples."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    return {
        sample.name: sample.value for family in registry.collect() for sample in family.samples
    }


def test_sequential_processes_reuse_files_and_keep_counts(folder):
    run()
    files = {path.name for path in folder.iterdir()}
    for _ in range(9):
        run()
    assert {path.name for path in folder.iterdir()} == files
    assert sums(folder)["treeclaim_transaction_retries_total"] == 10
    assert sums(folder)["treeclaim_forest_load_seconds_count"] == 10


def test_forked_processes_count_beside_each_other(folder):
    run(after=FORKS)
    assert sums(folder)["treeclaim_transaction_retries_total"] == 401
    assert sums(folder)["treeclaim_forest_load_seconds_sum"] == 401


def test_gauges_end_with_their_process_and_counters_stay(folder):
    with process(after=WAITS) as first, process(after=WAITS) as second:
        pids = {first.stdout.readline().strip(), second.stdout.readline().strip()}
        slots = Slots(folder)
        assert slots.find_living() == pids | {str(os.getpid())}
        assert sums(folder)["treeclaim_forest_providers"] == 7
        first.kill()
        second.kill()
    assert slots.find_living() == {str(os.getpid())}
    assert "treeclaim_forest_providers" not in sums(folder)
    assert sums(folder)["treeclaim_transaction_retries_total"] == 2


def test_mapped_files_are_fully_allocated(folder):
    """On a full disk, a write to a page without a block kills the process."""
    run()
    for path in folder.glob("*.db"):
        assert path.stat().st_blocks * 512 >= path.stat().st_size > 0


@pytest.mark.parametrize("after", ["", FORKS])
def test_a_process_without_room_counts_for_itself(folder, after):
    run(before=NO_ROOM, after=after)
    assert sums(folder) == {}


def test_forked_processes_without_room_count_for_themselves(folder):
    run(after=NO_ROOM + FORKS)
    assert sums(folder)["treeclaim_transaction_retries_total"] >= 1


def test_missing_metrics_folder_does_not_stop_the_process(monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, "/nowhere")
    run()
