# SPDX-License-Identifier: Apache-2.0
"""`treeclaim admin`: the admin listener by itself.

`treeclaim serve` starts one beside its workers. Under another WSGI server it is run like this, with
the same PROMETHEUS_MULTIPROC_DIR in its environment as the workers have. SIGHUP makes it read the file of
flavors again, which `serve` passes on.
"""

import argparse
import asyncio
import os
import signal
import socket
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client.registry import Collector

from treeclaim import logs
from treeclaim.admin.app import make_admin_application
from treeclaim.admin.capacity import Meter
from treeclaim.admin.collectors import FeedCollector, ResourceCollector
from treeclaim.admin.flavors import flavors_in
from treeclaim.admin.processes import ProcessCollector
from treeclaim.cli.configuration import add_config_options, configuration_of
from treeclaim.cli.output import CommandError
from treeclaim.cli.service.stores import opened_store
from treeclaim.config import Address, Configuration
from treeclaim.config.connections import ConnectionLimits
from treeclaim.model.request import CandidateRequest
from treeclaim.server.front import Front
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


def add_to(commands: Any) -> None:
    """Add the command."""
    command = commands.add_parser("admin", help="serve liveness, readiness and metrics")
    command.add_argument(
        "--until-input-ends",
        action="store_true",
        help="stop when the standard input is closed, which is when the parent is gone",
    )
    add_config_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Serve until stopped."""
    configuration = configuration_of(options)
    if configuration.admin is None:
        raise CommandError("[treeclaim]/admin_listen is empty: there is nothing to serve")
    logs.set_up(configuration)
    with opened_store(configuration) as store:
        listener = _listener(configuration.admin)
        if options.until_input_ends:
            threading.Thread(target=_leave_with_parent, daemon=True).start()
        collectors: list[Collector] = [FeedCollector(store), ProcessCollector()]
        meter = _meter(configuration, store)
        if meter is not None:
            collectors.append(ResourceCollector(meter))
        asyncio.run(_serve(make_admin_application(store, collectors), listener, meter))
    return 0


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
        return socket.create_server((address.host, address.port), family=_family(address.host))
    except OSError as error:
        # Python adds the address once more.
        reason = (error.strerror or str(error)).partition(" (while ")[0]
        raise CommandError(
            f"[treeclaim]/admin_listen: cannot listen on {address.host}:{address.port}: {reason}; "
            "without another address, or none, there are no probes and no metrics"
        ) from error


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _leave_with_parent() -> None:
    # Not by sys.stdin, whose lock this thread would hold when the interpreter ends.
    while os.read(0, 1):
        pass
    os._exit(0)
