# SPDX-License-Identifier: Apache-2.0
"""A request and its response, in threads.

A thread runs the application. An answer in one piece is sent as a whole. A streamed answer is produced in
turns of some pieces, and occupies no thread while the client reads; successive turns may run in different threads.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.operations.call import PIECES_KEY
from treeclaim.api.protocol.texts import http_date, now
from treeclaim.api.resources.extension.changes import ADOPT_KEY
from treeclaim.server.bounds import GONE_SECONDS, STREAM_BYTES, WAITING_SECONDS
from treeclaim.server.http.errors import busy
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.watchers import ReservedWatch
from treeclaim.watching import Watch

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from treeclaim.server.http.connection import HttpConnection

_LOG = logging.getLogger(__name__)

_Headers = list[tuple[str, str]]
_NO_BODY = (204, 304)
_LAST_CHUNK = b"0\r\n\r\n"

CLOSE_HEADER = "Connection: close\r\n"
"""Announces that this answer is the last of its connection."""

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "trailer"))
"""Headers that only the server writes."""


class Exchange:
    """A request until its response is complete; its bytes are counted until then."""

    def __init__(
        self,
        application: "WSGIApplication",
        client: "HttpConnection",
        head: RequestHead,
    ) -> None:
        self._application = application
        self._client = client
        self._post = client.listener.post
        self._head = head
        self._came = time.monotonic()
        self._status = ""
        self._headers: _Headers = []
        self._early: list[bytes] = []
        self._result: Iterable[bytes] | None = None
        self._pieces: Iterator[bytes] | None = None
        self._is_chunked = False
        self._left: int | None = None
        self._is_begun = False
        self._watch: ReservedWatch | None = None
        self._size = head.size
        client.add_bytes(head.size)
        head.environment[ADOPT_KEY] = self._adopt
        head.environment[PIECES_KEY] = True

    def run(self) -> None:
        """Run the application, and send the answer or its first pieces."""
        waited = time.monotonic() - self._came
        if self._client.is_gone and waited > GONE_SECONDS:
            self.close()
            self._post(self._client.drop)
            return
        if waited > WAITING_SECONDS:
            self.close()
            self._post(self._client.send_refusal, busy())
            return
        try:
            self._head.fill_environment()
            self._result = self._application(self._head.environment, self._start_response)
            watch = self._watch
            if watch is not None and self._status.startswith("200"):
                self._hand_over(watch)
            elif isinstance(self._result, list | tuple):
                self._send_whole([*self._early, *self._result])
            else:
                self._pieces = iter(self._result)
                self._make_pieces()
        except Exception:  # noqa: BLE001 - the client gets a 500, or the connection is closed
            _LOG.exception("The application failed")
            self._fail()

    def continue_stream(self) -> None:
        """Send the next pieces."""
        try:
            self._make_pieces()
        except Exception:  # noqa: BLE001 - the connection is closed
            _LOG.exception("The application failed in the middle of an answer")
            self._fail()

    def frame(self, piece: bytes) -> bytes:
        """Return a piece as it is sent, behind the head of the answer if it is the first."""
        begin = b"" if self._is_begun else self._begin_stream()
        if not self._has_body():
            return begin
        if self._left is not None:
            piece = piece[: self._left]
            self._left -= len(piece)
        return begin + (b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    @property
    def last_bytes(self) -> bytes:
        """The end of a begun answer, unless its length or closing the connection ends it."""
        return _LAST_CHUNK if self._is_chunked else b""

    @property
    def is_http_1_0(self) -> bool:
        """Whether the request is of the version without chunks and interim answers."""
        return self._head.is_http_1_0

    def connection_headers(self) -> str:
        """Return the headers that announce whether the connection stays open after this answer."""
        client, listener = self._client, self._client.listener
        if listener.is_stopping or not self._head.keep_alive:
            client.is_kept = False
        if not client.is_kept:
            return CLOSE_HEADER
        version = "Connection: keep-alive\r\n" if self.is_http_1_0 else ""
        return version + listener.keep_alive_header

    def close(self) -> None:
        """Close the application's iterator, and release the request.

        The request refers to this exchange and back, and the collector runs rarely.
        """
        close: Callable[[], None] | None = getattr(self._result, "close", None)
        self._result = self._pieces = None
        watch, self._watch = self._watch, None
        if watch is not None:
            # A WSGI layer has replaced the answer.
            watch.close()
        if close is not None:
            try:
                close()
            except Exception:  # noqa: BLE001 - the answer is made
                _LOG.exception("The application failed at the end of an answer")
        self._head.environment = {}
        self._head.target, self._head.body = b"", None
        size, self._size = self._size, 0
        self._client.add_bytes(-size)

    def _adopt(self, watch: Watch) -> bool:
        """Reserve a place for a watch that continues the answer; return False if all places are in use."""
        if self._watch is None:
            self._watch = self._client.listener.watchers.reserve(watch, self._client.add_bytes)
            return self._watch is not None
        return False

    def _hand_over(self, watch: ReservedWatch) -> None:
        opening = b"".join([*self._early, *(self._result or ())])
        data = self._begin_stream() + (self.frame(opening) if opening else b"")
        self._watch = None
        self.close()
        self._post(self._client.begin_watch, data, watch)

    def _start_response(
        self, status: str, headers: _Headers, exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        if self._is_begun and exc_info is not None:
            raise exc_info[1]
        self._status, self._headers = status, headers
        return self._early.append

    def _send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        has_body = self._has_body()
        head = self._render_head(length=sum(map(len, pieces)) if has_body else None)
        self.close()
        self._client.send_whole([head, *pieces] if has_body else [head])

    def _make_pieces(self) -> None:
        """Send pieces until `STREAM_BYTES` are unread, or the answer is complete."""
        room = STREAM_BYTES
        while room > 0:
            if self._client.is_gone:
                self.close()
                self._post(self._client.drop)
                return
            piece = self._next_piece()
            if piece is None:
                self._end_stream()
                return
            if piece:
                room -= len(piece)
                self._send_piece(self.frame(piece), is_last=False)
        self._post(self._client.end_turn)

    def _send_piece(self, data: bytes, *, is_last: bool) -> None:
        self._post(partial(self._client.send, data, is_last=is_last))

    def _next_piece(self) -> bytes | None:
        if self._early:
            return self._early.pop(0)
        return None if self._pieces is None else next(self._pieces, None)

    def _begin_stream(self) -> bytes:
        length = next(
            (value for name, value in self._headers if name.lower() == "content-length"), None
        )
        self._left = None if length is None else int(length)
        self._is_chunked = length is None and not self._head.is_http_1_0 and self._has_body()
        return self._render_head(length=None, ends_by_closing=length is None)

    def _end_stream(self) -> None:
        self.close()
        begin = b"" if self._is_begun else self._begin_stream()
        if self._left and self._has_body():
            _LOG.error("An answer has %s bytes less than it announced", self._left)
            self._post(self._client.drop)
        else:
            self._send_piece(begin + self.last_bytes, is_last=True)

    def _fail(self) -> None:
        self.close()
        if self._is_begun:
            self._post(self._client.drop)
        else:
            detail = "The request could not be answered."
            error = ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, detail)
            self._post(self._client.send_refusal, error)

    def _has_body(self) -> bool:
        return self._head.method != "HEAD" and int(self._status[:3]) not in _NO_BODY

    def _render_head(self, *, length: int | None, ends_by_closing: bool = False) -> bytes:
        """Return the head of the answer.

        Args:
            length: The length of the body, sent unless the application sends it.
            ends_by_closing: Whether only the end of the connection may end the body.

        Raises:
            ValueError: if a header contains a line break.
        """
        names = [name.lower() for name, _ in self._headers]
        lines = [f"HTTP/1.1 {self._status}"]
        lines += [
            f"{name}: {value}"
            for lower, (name, value) in zip(names, self._headers, strict=True)
            if lower not in _HOP_BY_HOP
        ]
        if length is not None and "content-length" not in names:
            lines.append(f"Content-Length: {length}")
        elif self._is_chunked:
            lines.append("Transfer-Encoding: chunked")
        elif ends_by_closing and self._has_body():
            self._head.keep_alive = False
        lines.append(f"Date: {http_date(now())}")
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header of the answer contains a line break")
        data = f"{text}\r\n{self.connection_headers()}\r\n".encode("latin-1")
        self._is_begun = True
        return data
