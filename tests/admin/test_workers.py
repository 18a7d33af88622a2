# SPDX-License-Identifier: Apache-2.0
"""The files of workers that have ended go; what they counted does not."""

import json
import os
import subprocess
import sys
import threading

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from treeclaim.admin import workers
from treeclaim.admin.workers import forget_dead_workers, without_dead_workers
from treeclaim.metrics_files import AllocatedFile
from treeclaim.metrics_folder import FOLDER_VARIABLE

NAMES = ("counter", "histogram", "gauge_livemax")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The common folder of metrics."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def _ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _write(folder, pid, count):
    """Leave what a worker of this number counts."""
    labels = {"a": "1"}
    for kind, name, more in (
        ("counter", "c_total", {}),
        ("histogram", "h_sum", {}),
        ("histogram", "h_bucket", {"le": "1.0"}),
        ("histogram", "h_bucket", {"le": "+Inf"}),
        ("gauge_livemax", "g", {}),
    ):
        file = AllocatedFile(str(folder / f"{kind}_{pid}.db"))
        metric = name.partition("_")[0]
        key = json.dumps([metric, name, labels | more, "help"], sort_keys=True)
        file.write_value(key, float(count), 0.0)
        file.close()


def _sums(folder):
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    return {
        (sample.name, sample.labels.get("le")): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


@pytest.mark.slow
def test_forty_reloads_leave_no_more_files_than_one(folder):
    _write(folder, os.getpid(), 1)
    for _ in range(40):
        before = _sums(folder)
        _write(folder, _ended(), 10)
        forget_dead_workers()
        after = _sums(folder)
        assert after["c_total", None] == before["c_total", None] + 10
        assert after["h_bucket", "+Inf"] == before["h_bucket", "+Inf"] + 20
    names = {f"{name}_{os.getpid()}.db" for name in NAMES} | {"counter_0.db", "histogram_0.db"}
    assert {path.name for path in folder.iterdir()} == names
    assert after["c_total", None] == 401
    assert after["g", None] == 1


def test_what_a_process_left_that_was_killed_while_it_made_a_file_goes(folder):
    (folder / f"counter_{_ended()}.new").touch()
    living = folder / f"counter_{os.getpid()}.new"
    living.touch()
    forget_dead_workers()
    assert list(folder.iterdir()) == [living]


def test_while_somebody_reads_nobody_puts_anything_together(folder):
    """Of two admin listeners, one of which replaces the other, and processes that begin."""
    _write(folder, _ended(), 10)
    with without_dead_workers():
        _write(folder, _ended(), 10)
        before = _sums(folder)
        forget_dead_workers()
        assert _sums(folder) == before
        assert len(list(folder.glob("counter_*.db"))) == 2
    forget_dead_workers()
    assert len(list(folder.glob("counter_*.db"))) == 1
    assert _sums(folder)["c_total", None] == before["c_total", None]


def test_a_scrape_waits_for_who_puts_together_but_not_for_ever(folder, monkeypatch):
    _write(folder, _ended(), 10)
    monkeypatch.setattr(workers, "_PATIENCE", 0.05)
    with without_dead_workers():
        _write(folder, _ended(), 10)
        with without_dead_workers():
            assert len(list(folder.glob("counter_*.db"))) == 2
    monkeypatch.setattr(workers, "_PATIENCE", 60.0)
    holds, release = threading.Event(), threading.Event()

    def hold():
        with without_dead_workers():
            holds.set()
            release.wait(60)

    first = threading.Thread(target=hold)
    first.start()
    holds.wait(60)
    threading.Timer(0.05, release.set).start()
    with without_dead_workers():
        assert release.is_set()
    first.join()


def test_the_files_of_the_living_are_left(folder):
    _write(folder, os.getpid(), 1)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with without_dead_workers():
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
