# SPDX-License-Identifier: Apache-2.0
"""A process that answers requests.

It ends gracefully at SIGTERM, and when its standard input ends: the first process holds the other
end and never writes. That cannot be missed, however early the first process dies.
"""

import asyncio
import os
import signal
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from treeclaim import gate
from treeclaim.admin.certificates import Expiry
from treeclaim.api.app import application_of, services_of, store_of
from treeclaim.api.protocol.operations.call import Services
from treeclaim.api.protocol.policy import Policy
from treeclaim.config import Configuration
from treeclaim.helper_threads import start_helper_thread
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.replica import FollowedForest
from treeclaim.server.bounds import END_SECONDS, GRACE_SECONDS, SPARE_FILES, TLS_CONNECTIONS
from treeclaim.server.http.listener import HttpListener
from treeclaim.server.http.loop import new_loop
from treeclaim.server.processes.heartbeat import READY, answer_heartbeats
from treeclaim.server.processes.listening import allow_most_files
from treeclaim.server.settings import ServerSettings

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class Groundwork:
    """What a loader leaves to the processes that it forks; nothing in it belongs to a process.

    Attributes:
        settings: What the command line said.
        configuration: What the operator configured.
        policy: Who may do what.
        tls: What speaks TLS, with the certificate that was there when the loader began: a worker that starts
            while files are being renewed never meets half of them. None where it is not spoken.
        expiries: When certificates expire.
        picture: The inventory; None if the database was down.
    """

    settings: ServerSettings
    configuration: Configuration
    policy: Policy
    tls: ssl.SSLContext | None
    expiries: Sequence[Expiry]
    picture: FollowedForest | None = None


def work(groundwork: Groundwork, listener: socket.socket, connection: socket.socket) -> None:
    """Answer requests until told to stop.

    Args:
        groundwork: Code, configuration and inventory.
        listener: Where connections come.
        connection: To the first process; it gets a word as soon as requests are answered.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    gate.hand_over_soon()
    _watch_parent()
    services = _services(groundwork)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(groundwork, listener, connection, services))
    _end_soon(END_SECONDS)


def _services(groundwork: Groundwork) -> Services:
    configuration = groundwork.configuration
    store = store_of(configuration)
    services = services_of(configuration, groundwork.policy, store, groundwork.picture)
    # What was committed since comes with the first request, if the database does not answer now.
    with suppress(StoreUnavailableError), services.replica.current():
        pass
    return services


async def _serve(
    groundwork: Groundwork,
    listener: socket.socket,
    connection: socket.socket,
    services: Services,
) -> None:
    settings, tls = groundwork.settings, groundwork.tls
    limits = groundwork.configuration.connections
    most = min(
        limits.connections,
        allow_most_files() - SPARE_FILES,
        TLS_CONNECTIONS if tls else limits.connections,
    )
    application = application_of(services, groundwork.configuration)
    server = HttpListener(
        application, replace(limits, connections=max(most, 1)), settings.threads, tls
    )
    stop = asyncio.Event()
    server.loop.add_signal_handler(signal.SIGTERM, stop.set)
    try:
        connection.send(READY)
    except ConnectionError:
        # The first process has not learned of this one, and has started another by now.
        return

    def read() -> None:
        with services.replica.current():
            pass

    answer_heartbeats(server.loop, connection, read, server.pool.offer)
    server.listen(listener)
    await stop.wait()
    await server.stop()


def _watch_parent() -> None:
    """Stop when the first process is gone, or this one would keep the port."""

    def watch() -> None:
        # Not by sys.stdin, whose lock this thread would hold when the interpreter ends.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        _end_soon(GRACE_SECONDS + END_SECONDS)

    start_helper_thread("parent", watch)


def _end_soon(seconds: float) -> None:
    """End by force if this process has not ended by then: a thread may be in a long search."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
