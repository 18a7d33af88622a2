# SPDX-License-Identifier: Apache-2.0
"""An HTTP client with as little overhead as possible, so that times are those of the server."""

import socket
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import httptools

_CHUNK = 1 << 20

_IDLE_SECONDS = 5.0
"""Idle seconds after which a write uses a new connection. The server may have closed the old one, and the client could
not know whether the server processed the write."""


class Connection:
    """A kept connection to a server, for a single thread."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "localhost", parts.port or 80)
        self._prefix = parts.path.rstrip("/")
        lines = [f"Host: {parts.netloc}", *(f"{name}: {value}" for name, value in headers.items())]
        self._head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._last_use = time.monotonic()

    def get(self, path: str) -> tuple[int, bytes]:
        """Return the status and the whole body of an answer; reconnect if the connection was closed."""
        request = f"GET {self._prefix}{path} HTTP/1.1\r\n".encode() + self._head
        try:
            return self._exchange(request)
        except (ConnectionError, _ClosedError):
            self.close()
            return self._exchange(request)

    def put(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Put JSON, once; return the status and the whole body of the answer."""
        return self.send("PUT", path, body)

    def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Post JSON, once; return the status and the whole body of the answer."""
        return self.send("POST", path, body)

    def send(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request that writes, once; return the status and the whole body of the answer."""
        if time.monotonic() - self._last_use > _IDLE_SECONDS:
            self.close()
        head = (
            f"{method} {self._prefix}{path} HTTP/1.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        )
        return self._exchange(head.encode() + self._head + body)

    def close(self) -> None:
        """Close the connection; the next request makes another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        answer = _Answer()
        while not answer.is_complete:
            data = self._socket.recv(_CHUNK)
            if not data:
                raise _ClosedError
            answer.parser.feed_data(data)
        self._last_use = time.monotonic()
        if not answer.is_kept_alive:
            self.close()
        return answer.parser.get_status_code(), b"".join(answer.pieces)


class _ClosedError(Exception):
    """The server closed the connection before it answered."""


class _Answer:
    """Callbacks of the parser for a response."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.pieces: list[bytes] = []
        self.is_complete = False
        self.is_kept_alive = False

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = True
        # After this callback the parser expects another message and would return False.
        self.is_kept_alive = self.parser.should_keep_alive()
