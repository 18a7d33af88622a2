# SPDX-License-Identifier: Apache-2.0
"""Metrics of the program and its processes."""

import re
from contextlib import contextmanager

import httpx
import pytest

from tests.ports import free_port
from tests.servers import answers, eventually, service_environment, serving
from tests.service import HEADERS
from treeclaim import __version__


@contextmanager
def metrics_of(folder, *options):
    """A running service; yields a function that returns its metrics as text."""
    address = f"127.0.0.1:{free_port()}"
    environment = service_environment(folder, OS_TREECLAIM__ADMIN_LISTEN=address)
    with serving(environment, folder, *options) as server:
        eventually(answers(f"http://{address}/live"), "the admin listener answers")
        # The first request of a worker, so that it has started.
        httpx.get(f"{server.url}/resource_providers", headers=HEADERS)
        yield lambda: httpx.get(f"http://{address}/metrics").text


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_show_the_release_and_each_process(tmp_path, workers):
    # The first process, the listener, and the loader that several workers have.
    processes = {1: 3, 2: 5}[workers]
    with metrics_of(tmp_path, f"--workers={workers}") as text:
        assert re.search(
            rf'treeclaim_build_info{{python="3[^"]*",version="{re.escape(__version__)}"}} 1\.0',
            text(),
        )
        resident = eventually(
            lambda: (
                result
                if len(result := re.findall(r"process_resident_memory_bytes{.*} (\S+)", text()))
                == processes
                else None
            ),
            "all processes are told",
        )
        assert all(10e6 < float(value) < 10e9 for value in resident)
        for name in ("process_cpu_seconds_total", "process_open_fds", "process_threads"):
            values = re.findall(rf'{name}{{program="treeclaim",worker="\d+"}} (\S+)', text())
            assert values
            assert all(float(value) > 0 for value in values)
