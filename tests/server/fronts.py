# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve` with any application in this process, and raw clients."""

import asyncio
import http.client
import socket
import threading
from contextlib import contextmanager
from typing import NamedTuple

from treeclaim.config.configuration import ConnectionLimits
from treeclaim.server.http.listener import HttpListener
from treeclaim.server.http.loop import ServerLoop

LIMITS = {
    "header_seconds": 60.0,
    "body_seconds": 60.0,
    "answer_seconds": 60.0,
    "keep_alive_seconds": 60.0,
    "connections": 4096,
    "waiting": 1000,
    "body_bytes": 1024 * 1024,
    "watchers": 1000,
}
"""Limits that no test reaches unless it sets smaller ones."""

CLIENT_SECONDS = 60
HELLO = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def hello(environment, start_response):
    """The smallest application."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"hello"]


class Running:
    """A server that runs in a thread, and its listener `front`."""

    def __init__(self, application, threads, limits, backlog, tls=None, port=0):
        self._listener = socket.create_server(("127.0.0.1", port), backlog=backlog)
        self.address = self._listener.getsockname()
        self.front = None
        self._started = threading.Event()

        def run():
            with asyncio.Runner(loop_factory=ServerLoop) as runner:
                runner.run(self._run(application, threads, limits, tls))

        self._thread = threading.Thread(target=run)
        self._thread.start()
        self._started.wait()

    async def _run(self, application, threads, limits, tls):
        self._stop = asyncio.Event()
        self.front = HttpListener(application, ConnectionLimits(**(LIMITS | limits)), threads, tls)
        self.front.listen(self._listener)
        self._started.set()
        await self._stop.wait()
        await self.front.stop()

    def begin_stop(self):
        self.front.loop.call_soon_threadsafe(self._stop.set)

    def stop(self):
        """Stop the server, and wait for its end."""
        if self._thread.is_alive():
            self.begin_stop()
        self._thread.join()

    def connect(self, received=None):
        """Connect; `received` is the size of the kernel's receive buffer in bytes."""
        return connect(self.address, received)

    def ask(self, data=HELLO):
        """Return the answer to one request on a new connection."""
        with self.connect() as client:
            client.sendall(data)
            return receive(client)


@contextmanager
def running(application=hello, threads=2, backlog=2048, tls=None, port=0, **limits):
    """Run a server for a block, by default at a free port; limits are those of `ConnectionLimits`."""
    server = Running(application, threads, limits, backlog, tls, port)
    try:
        yield server
    finally:
        server.stop()


def connect(address, received=None, seconds=CLIENT_SECONDS):
    """Connect; `received` is the size of the kernel's receive buffer in bytes."""
    client = socket.socket()
    if received is not None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
    client.settimeout(seconds)
    client.connect(address)
    return client


def request_of(method, path, headers=None, body=None, version="1.1"):
    """Return the bytes of a request; a body adds its Content-Length."""
    fields = {"Host": "localhost"} | (headers or {})
    if body is not None:
        fields["Content-Length"] = len(body)
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {fields[name]}" for name in fields)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Answer(NamedTuple):
    """An answer.

    Attributes:
        body: The received part of the body.
        is_complete: Whether the whole body was received.
        says_close: Whether the answer announces that the connection is closed.
    """

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    is_complete: bool
    says_close: bool


def receive(client, method="GET"):
    """Read the only answer of a connection; return None if the connection ends before it."""
    response = http.client.HTTPResponse(client, method=method)
    try:
        response.begin()
    except http.client.RemoteDisconnected:
        return None
    says_close = response.will_close
    try:
        body, is_complete = response.read(), True
    except http.client.IncompleteRead as error:
        body, is_complete = error.partial, False
    return Answer(response.status, response.headers, body, is_complete, says_close)


def is_closed(client, seconds=CLIENT_SECONDS):
    """Wait until the server closes a connection; discard the remaining bytes."""
    client.settimeout(seconds)
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def everything(client):
    """Return all bytes until the server closes the connection."""
    data = b""
    while piece := client.recv(1 << 16):
        data += piece
    return data
