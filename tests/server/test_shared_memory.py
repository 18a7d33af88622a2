# SPDX-License-Identifier: Apache-2.0
"""Workers share the memory of the inventory."""

from dataclasses import replace

import httpx
import psutil
import pytest

from tests.clouds import flat
from tests.clouds.bulk import write_world
from tests.peer import memory_of
from tests.servers import eventually, service_environment, serving
from tests.service import HEADERS

PROVIDERS, COPIES = 1_000, 50
SEARCHES = 100
OWN_BYTES = 45_000_000
"""A worker's memory that is not shared: caches, connections, and shared pages with changed reference counts."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('world') / 'placement.db'}"
    write_world(url, replace(flat(PROVIDERS), copies=COPIES))
    return url


def memory_with(database, folder, workers):
    """Return the memory of all processes of a service after some requests, with shared pages counted once (PSS)."""
    environment = service_environment(folder, database)
    with serving(environment, folder, f"--workers={workers}") as service:
        eventually(
            lambda: service.log.read_text().count("runs as process") == workers, "all workers run"
        )
        for number in range(SEARCHES):
            # A new connection for each request reaches all workers.
            answer = httpx.get(
                f"{service.url}/allocation_candidates?resources=VCPU:1,MEMORY_MB:{number + 1}"
                "&limit=100",
                headers=HEADERS,
                timeout=60,
            )
            assert len(answer.json()["allocation_requests"]) == 100
        return memory_of(psutil.Process(service.process.pid))


def test_four_workers_share_one_inventory(database, tmp_path):
    folders = [tmp_path / "one", tmp_path / "four"]
    for folder in folders:
        folder.mkdir()
    memory = memory_with(database, folders[0], 1)
    four = memory_with(database, folders[1], 4)
    # The loader, which remains if there are several workers, counts as a worker.
    assert four <= 1.2 * memory + 4 * OWN_BYTES, (memory / 1e6, four / 1e6)
