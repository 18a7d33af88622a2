# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve` in this process, before any application, and raw clients."""

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
"""A limit that no test reaches unless it sets a shorter one."""

CLIENT_SECONDS = 60
HELLO = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def hello(environment, start_response):
    """The smallest application."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "5")])
    return [b"hello"]


class Running:
    """A server that runs in a thread.

    Attributes:
        address: Where it listens.
        front: The server itself.
    """

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
        """Stop it, and wait until it has."""
        if self._thread.is_alive():
            self.begin_stop()
        self._thread.join()

    def connect(self, received=None):
        """Connect; `received` is the size of the kernel's receive buffer in bytes."""
        return connect(self.address, received)

    def ask(self, data=HELLO):
        """The answer to one request on a new connection."""
        with self.connect() as client:
            client.sendall(data)
            return receive(client)


@contextmanager
def running(application=hello, threads=2, backlog=2048, tls=None, port=0, **limits):
    """A server for a block, at a free port if none is given; limits are those of `ConnectionLimits`."""
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
    """The bytes of a request; a body brings its length."""
    fields = {"Host": "localhost"} | (headers or {})
    if body is not None:
        fields["Content-Length"] = len(body)
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {fields[name]}" for name in fields)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Answer(NamedTuple):
    """An answer.

    Attributes:
        status, headers, body: As sent; the body as far as it came.
        is_complete: Whether the whole body came.
        says_close: Whether it announces that the connection is closed.
    """

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    is_complete: bool
    says_close: bool


def receive(client, method="GET"):
    """Read one answer, after which nothing else has come; None if the connection ended before it began."""
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
    """All that comes until the server closes."""
    data = b""
    while piece := client.recv(1 << 16):
        data += piece
    return data
