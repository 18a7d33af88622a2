# SPDX-License-Identifier: Apache-2.0
"""The process of the admin listener, beside workers, or alone for other WSGI servers (`treeclaim admin`)."""

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from treeclaim.admin.app import make_admin_application
from treeclaim.admin.capacity import Meter
from treeclaim.admin.collectors import (
    Collect,
    collect_expiries,
    collect_feed,
    collect_processes,
    collect_resources,
    collect_workers,
)
from treeclaim.api.resources.placing.flavor_file import FlavorFileError
from treeclaim.config import Configuration
from treeclaim.config.configuration import ConnectionLimits
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.request import CandidateRequest
from treeclaim.server.bounds import END_SECONDS, GRACE_SECONDS, TICK_SECONDS
from treeclaim.server.http.listener import HttpListener
from treeclaim.server.http.loop import ServerLoop
from treeclaim.server.processes.checks import PreforkState, read_flavors
from treeclaim.server.processes.liveness import LivenessTable
from treeclaim.store import Store

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

_THREADS = 4
"""Number of threads: a slow scrape, or one that waits for the database, must not block `/live`."""

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
"""Limits for few and near clients that send no bodies."""


def run_admin(
    state: PreforkState, loader: int, listener: socket.socket, table: LivenessTable, row: int
) -> None:
    """Serve until SIGTERM, or until the master and then the loader have ended.

    `loader` is the process id of the loader, which may have ended. `row` is that of this process in the liveness table;
    the workers have the rows after it.
    """
    configuration = state.configuration
    start_helper_thread("master", partial(_leave_after, loader))
    with closing(Store(configuration.database)) as store:
        collectors: list[Collect] = [
            partial(collect_feed, store),
            partial(collect_processes, [state.master]),
            partial(collect_expiries, state.expiries),
        ]
        census = None
        if state.settings.workers:
            census = partial(table.take_census, row + 1)
            collectors.append(partial(collect_workers, census))
        meter = _make_meter(configuration, store)
        if meter is not None:
            collectors.append(partial(collect_resources, meter))
            meter.start()
        keystone = None
        if configuration.uses_keystone:
            # A service without Keystone does not load its libraries.
            from treeclaim.admin.keystone_check import KeystoneState  # noqa: PLC0415

            keystone = KeystoneState(configuration.options)
            keystone.start()
        application = make_admin_application(store, collectors, census, state.expiries, keystone)
        with asyncio.Runner(loop_factory=ServerLoop) as runner:
            runner.run(_serve(application, listener, partial(table.stamp_alive, row)))


async def _serve(
    application: "WSGIApplication", listener: socket.socket, note_ready: partial[None]
) -> None:
    stop = asyncio.Event()
    server = HttpListener(application, _LIMITS, _THREADS)
    server.loop.add_signal_handler(signal.SIGTERM, stop.set)
    server.listen(listener)
    note_ready()
    await stop.wait()
    await server.stop()


def _make_meter(configuration: Configuration, store: Store) -> Meter | None:
    settings = configuration.metrics
    if settings is None:
        return None
    flavors: Mapping[str, CandidateRequest] = {}
    try:
        flavors = read_flavors(configuration)
    except FlavorFileError as error:
        _LOG.error("[treeclaim]/metrics_of_flavors: %s", error)
    return Meter(store, settings.aggregates, flavors, configuration.search.most_bytes)


def _leave_after(loader: int) -> None:
    """End this process after the master has ended and the loader has stopped the workers."""
    # `sys.stdin` has a lock, which this thread would hold when the interpreter exits.
    while os.read(0, 1):
        pass
    while os.getppid() == loader:
        time.sleep(TICK_SECONDS)
    # SIGTERM lets running requests finish.
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS + END_SECONDS)
    os._exit(0)
