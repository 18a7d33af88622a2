# SPDX-License-Identifier: Apache-2.0
"""Reads what the application left unread of a request's body (contract page 00, section 4).

After an answer that came before the body was read, a server either takes the rest of the body for
the next request, or closes the connection, which resets it and may lose the answer. The server of
`treeclaim serve` reads bodies itself and does not need this layer; other servers do.
"""

from collections.abc import Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any

from treeclaim.api.middleware.layers import Headers, Write

if TYPE_CHECKING:
    from wsgiref.types import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

_PIECE = 16 * 1024
"""Bytes read at a time; servers return only when that many, or all, have arrived."""

_DRAIN_SECONDS = 30.0
"""Seconds to read for, checked after each piece. The server limits the time of one piece: uWSGI by
socket-timeout, Apache by RequestReadTimeout, gunicorn not at all."""


class Draining:
    """The outermost WSGI layer, which reads the rest of each body.

    A body longer than the limit is not read, and the answer announces that the connection closes.
    """

    def __init__(self, application: "WSGIApplication", most_bytes: int) -> None:
        self._application = application
        self._most_bytes = most_bytes

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer; hand the first byte to the server only after the body has been read."""
        length = _length_of(environment)
        if length <= 0:
            return self._application(environment, start_response)
        if length > self._most_bytes:
            return self._application(environment, _closing(start_response))
        body = _Counted(environment["wsgi.input"])
        environment["wsgi.input"] = body
        answer = self._application(environment, start_response)
        body.drain(length)
        return answer


def _length_of(environment: "WSGIEnvironment") -> int:
    text = environment.get("CONTENT_LENGTH") or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _closing(start_response: "StartResponse") -> "StartResponse":
    """Announce in the answer that the connection closes after it."""

    def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
        return start_response(status, [*headers, ("Connection", "close")], exc_info)

    return start


class _Counted:
    """A request's body that counts how much of it was read."""

    def __init__(self, inner: "InputStream") -> None:
        self._inner = inner
        self._read = 0

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes."""
        return self._count(self._inner.read(size))

    def readline(self, size: int = -1, /) -> bytes:
        """Read a line, or so many bytes of it."""
        return self._count(self._inner.readline(size))

    def readlines(self, hint: int = -1, /) -> list[bytes]:
        """Read lines, of about so many bytes in all."""
        return [self._count(line) for line in self._inner.readlines(hint)]

    def __iter__(self) -> "Iterable[bytes]":
        return map(self._count, self._inner)

    def drain(self, length: int) -> None:
        """Read up to a length, for a bounded time; the client may be gone."""
        end = monotonic() + _DRAIN_SECONDS
        try:
            while self._read < length and monotonic() < end:
                if not self.read(min(_PIECE, length - self._read)):
                    return
        except (OSError, ValueError):
            return

    def _count(self, data: bytes) -> bytes:
        self._read += len(data)
        return data
