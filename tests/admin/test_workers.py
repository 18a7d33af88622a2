# SPDX-License-Identifier: Apache-2.0
"""The files of workers that have ended go; what they counted does not."""

import json
import os
import subprocess
import sys

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

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


def test_the_files_of_the_living_are_left(folder):
    _write(folder, os.getpid(), 1)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with without_dead_workers():
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
