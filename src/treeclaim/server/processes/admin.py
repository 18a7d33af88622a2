# SPDX-License-Identifier: Apache-2.0
"""The admin listener as a process: by itself, or forked beside the workers of `treeclaim serve`."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from treeclaim.admin.app import make_admin_application
from treeclaim.admin.capacity import Meter
from treeclaim.admin.census import TakeCensus
from treeclaim.admin.certificates import Expiry
from treeclaim.admin.collectors import ExpiryCollector, FeedCollector, ResourceCollector
from treeclaim.admin.flavors import FlavorFileError, flavors_in
from treeclaim.admin.processes import ProcessCollector, WorkerCollector
from treeclaim.config import Configuration
from treeclaim.config.connections import ConnectionLimits
from treeclaim.model.request import CandidateRequest
from treeclaim.server.front import Front
from treeclaim.server.processes.heartbeat import BROKEN, READY, CensusClient
from treeclaim.server.processes.listening import ListenError, admin_socket
from treeclaim.server.processes.worker import Groundwork
from treeclaim.server.turns import new_loop
from treeclaim.store import Store

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_THREADS = 4
"""A slow scrape, and one that waits for the database, do not hide that the service is alive."""

_LIMITS = ConnectionLimits(
    header_seconds=5.0,
    body_seconds=5.0,
    answer_seconds=10.0,
    keep_alive_seconds=75.0,
    connections=128,
    waiting=64,
    body_bytes=64 * 1024,
    watchers=0,
)
"""Probes and scrapers are few and near, and send no bodies."""


def serve_beside_workers(
    groundwork: Groundwork,
    listener: socket.socket,
    connection: socket.socket,
    first_process: int,
) -> None:
    """Serve until stopped, or until the first process is gone.

    Args:
        groundwork: What the operator configured, and when certificates expire.
        listener: Where connections come.
        connection: To the first process, which tells which workers answer.
        first_process: Its number; it counts nothing, but is measured.
    """
    configuration = groundwork.configuration
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with_first_process, daemon=True).start()
    try:
        connection.send(READY if _can_read_flavors(configuration) else BROKEN)
    except ConnectionError:
        # The first process has not learned of this one, and has started another by now.
        return
    with closing(Store(configuration.database)) as store:
        others, census = [first_process], CensusClient(connection).census
        expiries = groundwork.expiries
        _serve_at(listener, configuration, store, others, census=census, expiries=expiries)


def serve(configuration: Configuration, store: Store) -> None:
    """Serve by itself until SIGTERM or SIGINT; SIGHUP reads the file of flavors again.

    Args:
        configuration: What the operator configured.
        store: The database.

    Raises:
        ListenError: if there is no address to listen on, or it is taken.
    """
    if configuration.admin is None:
        raise ListenError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    address = configuration.admin
    _serve_at(admin_socket(address.host, address.port), configuration, store)


def _serve_at(
    listener: socket.socket,
    configuration: Configuration,
    store: Store,
    others: Sequence[int] = (),
    *,
    census: TakeCensus | None = None,
    expiries: Sequence[Expiry] = (),
) -> None:
    collectors: list[Collector] = [FeedCollector(store), ProcessCollector(others)]
    collectors.append(ExpiryCollector(expiries))
    if census is not None:
        collectors.append(WorkerCollector(census))
    meter = _meter(configuration, store)
    if meter is not None:
        collectors.append(ResourceCollector(meter))
    application = make_admin_application(store, collectors, census, expiries)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(application, listener, meter))


async def _serve(
    application: "WSGIApplication", listener: socket.socket, meter: Meter | None
) -> None:
    """Serve until stopped; a client that waits holds no thread here either."""
    stop = asyncio.Event()
    front = Front(application, _LIMITS, _THREADS)
    for number in (signal.SIGTERM, signal.SIGINT):
        front.loop.add_signal_handler(number, stop.set)
    front.loop.add_signal_handler(signal.SIGHUP, _nothing if meter is None else meter.reload)
    if meter is not None:
        # After the signal is heard: what it tells to read again is not read before.
        meter.start()
    front.listen(listener)
    await stop.wait()
    # Whoever is being answered gets the rest, if that does not take long.
    await front.stop()


def _nothing() -> None:
    """Do nothing: without a file of flavors there is nothing to read again."""


def _meter(configuration: Configuration, store: Store) -> Meter | None:
    wanted = configuration.metrics
    if wanted is None:
        return None

    def read_flavors() -> Mapping[str, CandidateRequest]:
        return _flavors(configuration)

    return Meter(store, wanted.aggregates, read_flavors, configuration.search.most_bytes)


def _flavors(configuration: Configuration) -> Mapping[str, CandidateRequest]:
    """Return the flavors that the operator wants to be counted.

    Raises:
        FlavorFileError: if their file is broken.
    """
    wanted = configuration.metrics
    if wanted is None or wanted.flavors is None:
        return {}
    return flavors_in(wanted.flavors, configuration.max_request_groups)


def _can_read_flavors(configuration: Configuration) -> bool:
    try:
        _flavors(configuration)
    except FlavorFileError:
        # Who reads them to count them tells what is wrong.
        return False
    return True


def _leave_with_first_process() -> None:
    # Not by sys.stdin, whose lock this thread would hold when the interpreter ends.
    while os.read(0, 1):
        pass
    os._exit(0)
