# SPDX-License-Identifier: Apache-2.0
"""The server of `treeclaim serve` in this process, before any application, and raw clients."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import httptools

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
        """A new connection, with so many bytes of room for what it does not read."""
        client = socket.socket()
        if received is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
        client.settimeout(CLIENT_SECONDS)
        client.connect(self.address)
        return client

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


class Answer:
    """An answer as a parser reads it.

    Attributes:
        status, headers, body: As sent; names of headers in lower case.
        says_close: Whether it announces that the connection is closed.
    """

    def __init__(self, method="GET"):
        self.status = None
        self.headers = {}
        self.body = b""
        self.is_complete = False
        self.says_close = False
        self._method = method
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data):
        """Take a piece."""
        self._parser.feed_data(data)

    def on_header(self, name, value):
        self.headers[name.decode().lower()] = value.decode()

    def on_headers_complete(self):
        self.status = self._parser.get_status_code()
        self.says_close = not self._parser.should_keep_alive()
        if self._method == "HEAD" or (self.status == 100):
            self.is_complete = self._method == "HEAD"

    def on_body(self, data):
        self.body += data

    def on_message_complete(self):
        self.is_complete = self.status != 100


def receive(client, method="GET"):
    """Read one answer; None if the connection ended before it began."""
    answer = Answer(method)
    while not answer.is_complete:
        data = client.recv(1 << 16)
        if not data:
            break
        answer.feed(data)
    return answer if answer.status else None


def is_closed(client, seconds=CLIENT_SECONDS):
    """Wait until the server closes a connection; what it still sends is dropped."""
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
