# SPDX-License-Identifier: Apache-2.0
"""Services under measurement, each on its own database, and the loop over cases."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console

from bench.clients.endpoint import Endpoint
from bench.rows import MIB, OURS, PEER, SECONDS, Row
from tests import peer
from tests.clouds import World
from tests.clouds.bulk import write_world
from tests.databases import server_of
from tests.proxy import delayed

Start = Callable[[str, Path, int], AbstractContextManager[tuple[str, psutil.Process]]]
"""Starts a service on a database URL, with a log folder and a number of workers; yields its URL and process."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that can be started.

    Attributes:
        name: Its name in the tables.
        start: Starts it.
        has_extension: Whether it is Treeclaim.
    """

    name: str
    start: Start
    has_extension: bool = True


TREECLAIM = Service(OURS, peer.treeclaim_on)
PLACEMENT = Service(PEER, peer.openstack_placement_on, has_extension=False)


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a run.

    Attributes:
        database: The kind of database of the services.
        rounds: Turns of ten searches in a measurement.
        steps: Steps of each load.
        seconds: The time limit of a measurement of one service.
        pairs: Repetitions of each case; every second repetition reverses the order of the services.
        workers: Processes of each service.
        delay: Seconds added to each round trip to the database.
    """

    database: str = "sqlite"
    rounds: int = 5
    steps: int = 100
    seconds: float = 2.0
    pairs: int = 1
    workers: int = 1
    delay: float = 0.0


Measure = Callable[[World, Sequence[Endpoint], Extent], Iterator[Row]]
"""Measures the endpoints of a world in turn; yields rows."""


@dataclass(frozen=True, slots=True)
class Case:
    """A world and its measures, in order.

    Attributes:
        part: The part of the run.
        make: Makes the world.
        measures: The measures.
        has_peer: Whether the peer can run them in reasonable time.
        is_large: Whether only a run with large worlds measures it.
        needs_database: Whether the figures depend on the kind of the database.
    """

    part: str
    make: Callable[[], World]
    measures: Sequence[Measure]
    has_peer: bool = True
    is_large: bool = False
    needs_database: bool = True


def measure(
    cases: Sequence[Case], services: Sequence[Service], extent: Extent, console: Console
) -> Iterator[Row]:
    """Measure each case on new databases; yield the rows of all services.

    Raises:
        SystemExit: if a service cannot be installed, or gives a wrong answer.
    """
    for case in cases:
        world = case.make()
        console.print(f"Measuring {world.name}, {world.size} providers")
        with ExitStack() as stack:
            endpoints = []
            for service in services:
                if service.has_extension or case.has_peer:
                    endpoint, process = _start(stack, service, world, extent)
                    endpoints.append(endpoint)
                    yield from _first_answer(endpoint, process, world)
            for measure_case in case.measures:
                for number in range(extent.pairs):
                    yield from measure_case(world, endpoints[:: -1 if number % 2 else 1], extent)


def _start(
    stack: ExitStack, service: Service, world: World, extent: Extent
) -> tuple[Endpoint, psutil.Process]:
    folder = Path(stack.enter_context(peer.new_folder()))
    url = stack.enter_context(server_of(extent.database).database(folder))
    write_world(url, world)
    url = stack.enter_context(delayed(url, extent.delay))
    try:
        address, process = stack.enter_context(service.start(url, folder, extent.workers))
    except subprocess.CalledProcessError:
        raise SystemExit(f"{service.name} cannot be installed here; use --no-peer") from None
    return Endpoint(service.name, address, has_extension=service.has_extension), process


def _first_answer(endpoint: Endpoint, process: psutil.Process, world: World) -> Iterator[Row]:
    """Yield the time to the first answer after a start, and the memory then."""
    endpoint.ask("resources=VCPU:1", 1)
    row = partial(Row, endpoint=endpoint.name)
    seconds = time.time() - process.create_time()
    yield row(f"{world.name}: first answer", value=seconds, unit=SECONDS)
    yield row(f"{world.name}: memory", value=peer.memory_of(process) / 2**20, unit=MIB)
