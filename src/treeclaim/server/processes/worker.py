# SPDX-License-Identifier: Apache-2.0
"""A process that answers requests.

SIGTERM and the end of its standard input stop it gracefully. The master holds the other end of that pipe and never
writes, so the end of the master stops its workers.
"""

import asyncio
import os
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import replace

from treeclaim import gate
from treeclaim.api.app import create_application, create_services, open_store
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
    """Answer requests until SIGTERM or the end of the standard input; `row` is that of this process in the table."""
    gate.shorten_switch_interval()
    services = make_services(state)
    with asyncio.Runner(loop_factory=ServerLoop) as runner:
        runner.run(_serve(state, listener, table, row, services))
    _end_soon(END_SECONDS)


def make_services(state: PreforkState) -> Services:
    """Open the database, and apply the changes since the inventory was loaded."""
    configuration = state.configuration
    store = open_store(configuration)
    services = create_services(configuration, state.policy, store, state.inventory)
    # If the database does not answer, the first request applies the changes.
    with suppress(StoreUnavailableError), services.replica.borrow_forest():
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
    most_connections = min(
        limits.connections,
        allow_most_files() - SPARE_FILES,
        TLS_CONNECTIONS if tls else limits.connections,
    )
    application = create_application(services, state.configuration)
    server = HttpListener(
        application, replace(limits, connections=max(most_connections, 1)), settings.threads, tls
    )
    stop = asyncio.Event()

    def note_end_of_master() -> None:
        server.loop.remove_reader(0)
        stop.set()

    def read_inventory() -> None:
        with services.replica.borrow_forest():
            pass

    server.loop.add_signal_handler(signal.SIGTERM, stop.set)
    server.loop.add_reader(0, note_end_of_master)
    server.listen(listener)
    Heartbeat(table, row, read_inventory, server.pool.offer).beat()
    await stop.wait()
    await server.stop()


def _end_soon(seconds: float) -> None:
    """Exit after some seconds even if a thread still runs a search."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
