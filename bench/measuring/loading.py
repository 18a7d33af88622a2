# SPDX-License-Identifier: Apache-2.0
"""Services that hold a world: their start, the time to the first response, and the memory then."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.clients.endpoint import OURS, PEER, Endpoint
from bench.measuring.row import Row
from tests import peer
from tests.clouds import World
from tests.clouds.bulk import write_world
from tests.databases import server_of
from tests.delay import delayed

STARTS = {OURS: peer.treeclaim_on, PEER: peer.openstack_placement_on}


@contextmanager
def serving(
    name: str,
    world: World,
    database: str = "sqlite",
    *,
    start: Callable[..., Any] | None = None,
    workers: int = 1,
    delay: float = 0.0,
) -> Iterator[tuple[Endpoint, psutil.Process]]:
    """Run a service on a new database that holds a world.

    Args:
        name: Name of the endpoint.
        world: The contents of the database.
        database: The kind of the database.
        start: Starts the service on a database with its log in a folder; None to start it by its name.
        workers: Processes of the service.
        delay: Seconds that each round trip to the database takes longer.

    Raises:
        SystemExit: if the service cannot be installed.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(peer.new_folder()))
        url = stack.enter_context(server_of(database).database(folder))
        write_world(url, world)
        url = stack.enter_context(delayed(url, delay))
        try:
            running = (start or STARTS[name])(url, folder, workers)
            address, process = stack.enter_context(running)
        except subprocess.CalledProcessError:
            raise SystemExit(f"{name} cannot be installed here; use --no-peer") from None
        yield Endpoint(name, address), process


def first_answer(endpoint: Endpoint, process: psutil.Process, world: World) -> Row:
    """Ask the first question of all to a service that has just started."""
    endpoint.ask("resources=VCPU:1", 1)
    return Row(
        case=f"{world.name}: first answer",
        endpoint=endpoint.name,
        median_ms=(time.time() - process.create_time()) * 1000,
        resident_bytes=peer.memory_of(process),
        providers=world.size,
    )


def bytes_each(row: Row, smallest: Row) -> float | None:
    """Return by how many bytes the memory of a service grows with each provider.

    Args:
        row: About a large world.
        smallest: About the smallest world that the same service held.
    """
    more = (row.providers or 0) - (smallest.providers or 0)
    if row.resident_bytes is None or smallest.resident_bytes is None or more <= 0:
        return None
    return (row.resident_bytes - smallest.resident_bytes) / more
