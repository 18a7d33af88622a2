# SPDX-License-Identifier: Apache-2.0
"""A process that answers requests.

It ends gracefully at SIGTERM, and when its standard input ends: the first process holds the other
end and never writes. That cannot be missed, however early the first process dies.
"""

import asyncio
import os
import signal
import socket
import threading
from dataclasses import replace

from treeclaim.server.bounds import END_SECONDS, GRACE_SECONDS, SPARE_FILES, TLS_CONNECTIONS
from treeclaim.server.front import Front
from treeclaim.server.processes.listening import allow_most_files, tls_context
from treeclaim.server.settings import ServerSettings
from treeclaim.wsgi import CONFIG_FILES_VARIABLE, Started, start

_THREADS_VARIABLE = "OS_TREECLAIM__SERVER_THREADS"
"""Tells the application how many threads it is run in."""


def work(settings: ServerSettings, listener: socket.socket, ready: int) -> None:
    """Answer requests until told to stop.

    Args:
        settings: What the command line said.
        listener: Where connections come.
        ready: File descriptor that gets a line as soon as requests are answered.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _watch_parent()
    os.environ[CONFIG_FILES_VARIABLE] = os.pathsep.join(settings.config_files)
    os.environ[_THREADS_VARIABLE] = str(settings.threads)
    started = start(f"{settings.workers} x {settings.threads} threads", pages=True)
    asyncio.run(_serve(settings, listener, ready, started))
    _end_soon(END_SECONDS)


async def _serve(
    settings: ServerSettings, listener: socket.socket, ready: int, started: Started
) -> None:
    tls = tls_context(settings)
    limits = started.configuration.connections
    most = min(
        limits.connections,
        allow_most_files() - SPARE_FILES,
        TLS_CONNECTIONS if tls else limits.connections,
    )
    front = Front(
        started.application, replace(limits, connections=max(most, 1)), settings.threads, tls
    )
    stop = asyncio.Event()
    front.loop.add_signal_handler(signal.SIGTERM, stop.set)
    front.listen(listener)
    os.write(ready, b"ready\n")
    os.close(ready)
    await stop.wait()
    await front.stop()


def _watch_parent() -> None:
    """Stop when the first process is gone, or this one would keep the port."""

    def watch() -> None:
        # Not by sys.stdin, whose lock this thread would hold when the interpreter ends.
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        _end_soon(GRACE_SECONDS + END_SECONDS)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _end_soon(seconds: float) -> None:
    """End by force if this process has not ended by then: a thread may be in a long search."""
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()


def main(arguments: list[str]) -> None:
    """Run a worker, as the first process starts it: settings, and two file descriptors."""
    text, listener, ready = arguments
    work(ServerSettings.from_json(text), socket.socket(fileno=int(listener)), int(ready))
