# SPDX-License-Identifier: Apache-2.0
"""The admin listener as a process: by itself, or forked beside the workers of `treeclaim serve`."""

import asyncio
import logging
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
from treeclaim.admin.collectors import FeedCollector, ResourceCollector
from treeclaim.admin.flavors import flavors_in
from treeclaim.admin.processes import ProcessCollector
from treeclaim.config import Address, Configuration
from treeclaim.config.connections import ConnectionLimits
from treeclaim.model.request import CandidateRequest
from treeclaim.server.front import Front
from treeclaim.server.processes.listening import ListenError, tcp_socket
from treeclaim.store import Store

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

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


def serve_beside_workers(configuration: Configuration, first_process: int) -> None:
    """Serve until stopped, or until the first process is gone; without an address, say so."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with_first_process, daemon=True).start()
    with closing(Store(configuration.database)) as store:
        try:
            serve(configuration, store, [first_process])
        except ListenError as error:
            _LOG.error("%s", error)


def serve(configuration: Configuration, store: Store, others: Sequence[int] = ()) -> None:
    """Serve until SIGTERM or SIGINT; SIGHUP reads the file of flavors again.

    Args:
        configuration: What the operator configured.
        store: The database.
        others: Processes to measure besides those that count.

    Raises:
        ListenError: if there is no address to listen on, or it is taken.
    """
    if configuration.admin is None:
        raise ListenError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    listener = _listener(configuration.admin)
    collectors: list[Collector] = [FeedCollector(store), ProcessCollector(others)]
    meter = _meter(configuration, store)
    if meter is not None:
        collectors.append(ResourceCollector(meter))
    asyncio.run(_serve(make_admin_application(store, collectors), listener, meter))


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


def _nothing() -> None:
    """Do nothing: without a file of flavors there is nothing to read again."""


def _meter(configuration: Configuration, store: Store) -> Meter | None:
    wanted = configuration.metrics
    if wanted is None:
        return None

    def read_flavors() -> Mapping[str, CandidateRequest]:
        if wanted.flavors is None:
            return {}
        return flavors_in(wanted.flavors, configuration.max_request_groups)

    return Meter(store, wanted.aggregates, read_flavors, configuration.search.most_bytes)


def _listener(address: Address) -> socket.socket:
    try:
        return tcp_socket(address.host, address.port)
    except ListenError as error:
        raise ListenError(
            f"[treeclaim]/admin_listen: {error}; without another address, or none, there are no "
            "probes and no metrics"
        ) from error


def _leave_with_first_process() -> None:
    # Not by sys.stdin, whose lock this thread would hold when the interpreter ends.
    while os.read(0, 1):
        pass
    os._exit(0)
