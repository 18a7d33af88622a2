# SPDX-License-Identifier: Apache-2.0
"""A process that answers requests.

It ends gracefully at SIGTERM, and when its standard input ends: the master holds the other end and never
writes. That cannot be missed, however early the master ends.
"""

import asyncio
import os
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import replace

from treeclaim import gate
from treeclaim.api.app import application_of, services_of, store_of
from treeclaim.api.protocol.operations.call import Services
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.server.bounds import END_SECONDS, SPARE_FILES, TLS_CONNECTIONS
from treeclaim.server.http.listener import HttpListener
from treeclaim.server.http.loop import ServerLoop
from treeclaim.server.processes.checks import PreforkState
from treeclaim.server.processes.listening import allow_most_files
from treeclaim.server.processes.liveness import Heartbeat, LivenessTable


def run_worker(
    state: PreforkState, listener: socket.socket, table: LivenessTable, row: int
) -> None:
    """Answer requests until told to stop.

    Args:
        state: Code, configuration and inventory.
        listener: Where connections come.
        table: Where this process writes that it is alive.
        row: Its row there.
    """
    gate.hand_over_soon()
    services = make_services(state)
    with asyncio.Runner(loop_factory=ServerLoop) as runner:
        runner.run(_serve(state, listener, table, row, services))
    _end_soon(END_SECONDS)


def make_services(state: PreforkState) -> Services:
    """Open the database, and catch up with what was committed since the inventory was loaded."""
    configuration = state.configuration
    store = store_of(configuration)
    services = services_of(configuration, state.policy, store, state.picture)
    # The inventory comes with the first request, if the database does not answer now.
    with suppress(StoreUnavailableError), services.replica.current():
        pass
    return services


async def _serve(
    state: PreforkState,
    listener: socket.socket,
    table: LivenessTable,
    row: int,
    services: Services,
) -> None:
    settings, tls = state.settings, state.tls
    limits = state.configuration.connections
    most = min(
        limits.connections,
        allow_most_files() - SPARE_FILES,
        TLS_CONNECTIONS if tls else limits.connections,
    )
    application = application_of(services, state.configuration)
    server = HttpListener(
        application, replace(limits, connections=max(most, 1)), settings.threads, tls
    )
    stop = asyncio.Event()

    def note_end_of_master() -> None:
        server.loop.remove_reader(0)
        stop.set()

    def read() -> None:
        with services.replica.current():
            pass

    server.loop.add_signal_handler(signal.SIGTERM, stop.set)
    server.loop.add_reader(0, note_end_of_master)
    server.listen(listener)
    Heartbeat(table, row, read, server.pool.offer).beat()
    await stop.wait()
    await server.stop()


def _end_soon(seconds: float) -> None:
    """End by force if this process has not ended by then: a thread may be in a long search."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
