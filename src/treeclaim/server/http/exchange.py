# SPDX-License-Identifier: Apache-2.0
"""Runs the application for a request in a thread, and sends the response.

A streamed response is produced in turns, which may run in different threads. It occupies no thread while the client
reads.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import TYPE_CHECKING, Any

from treeclaim.api.protocol.errors import ApiError
from treeclaim.api.protocol.operations.call import PIECES_KEY
from treeclaim.api.protocol.texts import format_http_date, now
from treeclaim.api.resources.extension.changes import ADOPT_KEY
from treeclaim.server.bounds import GONE_SECONDS, STREAM_BYTES, WAITING_SECONDS
from treeclaim.server.http.errors import busy
from treeclaim.server.http.head import RequestHead
from treeclaim.watching import Watch

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from treeclaim.server.http.connection import HttpConnection

_LOG = logging.getLogger(__name__)

_Headers = list[tuple[str, str]]
_NO_BODY = (204, 304)
_LAST_CHUNK = b"0\r\n\r\n"

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "trailer"))
"""Headers that only the server may write."""


class Exchange:
    """A request until its response is complete."""

    def __init__(
        self,
        application: "WSGIApplication",
        client: "HttpConnection",
        head: RequestHead,
    ) -> None:
        self._application = application
        self._client = client
        self._post = client.listener.post
        self.head = head
        self._arrived_at = time.monotonic()
        self._status = ""
        self._headers: _Headers = []
        self._written_pieces: list[bytes] = []
        self._result: Iterable[bytes] | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._is_chunked = self._is_begun = False
        self._watch: Watch | None = None
        head.environment[ADOPT_KEY] = self._adopt
        head.environment[PIECES_KEY] = True

    def run(self) -> None:
        """Run the application, and send the answer or its first pieces."""
        waiting_seconds = time.monotonic() - self._arrived_at
        if self._client.is_gone and waiting_seconds > GONE_SECONDS:
            self._abort()
            return
        if waiting_seconds > WAITING_SECONDS:
            self._refuse(busy())
            return
        try:
            self.head.fill_environment()
            self._result = self._application(self.head.environment, self._start_response)
            if self._watch is not None and self._status.startswith("200"):
                self._hand_over(self._watch)
            elif isinstance(self._result, list | tuple):
                self._send_whole([*self._written_pieces, *self._result])
            else:
                self._pieces = chain(self._written_pieces, self._result)
                self._send_pieces()
        except Exception:  # noqa: BLE001 - the client gets a 500, or the connection is closed
            self._fail()

    def continue_stream(self) -> None:
        """Send the next pieces of a stream."""
        try:
            self._send_pieces()
        except Exception:  # noqa: BLE001 - the connection is closed
            self._fail()

    def frame(self, piece: bytes) -> bytes:
        """Return the framed bytes of a piece, after the head of the answer if the piece is the first."""
        head = b"" if self._is_begun else self._render_head(None)
        if not piece or not self._has_body():
            return head
        return head + (b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    @property
    def last_bytes(self) -> bytes:
        """The end of a chunked answer; empty for others, which end by length or with the connection."""
        return _LAST_CHUNK if self._is_chunked else b""

    def close(self) -> None:
        """Close the application's iterator, and release the request.

        The request and this exchange refer to each other, and garbage is collected rarely.
        """
        close: Callable[[], None] | None = getattr(self._result, "close", None)
        self._result, self._pieces = None, iter(())
        watch, self._watch = self._watch, None
        if watch is not None:
            # A WSGI layer has replaced the answer.
            self._client.listener.watchers.close(watch)
        if close is not None:
            try:
                close()
            except Exception:  # noqa: BLE001 - the answer is complete
                _LOG.exception("The application failed at the end of an answer")
        self.head.environment = {}
        self.head.target, self.head.body = b"", None

    def _adopt(self, watch: Watch) -> bool:
        """Reserve a place for a watch that continues the answer; return whether one is free."""
        if self._watch is not None or not self._client.listener.watchers.reserve(watch):
            return False
        self._watch = watch
        return True

    def _hand_over(self, watch: Watch) -> None:
        data = self.frame(b"".join([*self._written_pieces, *(self._result or ())]))
        self._watch = None
        self.close()
        self._post(self._client.begin_watch, data, watch)

    def _start_response(
        self, status: str, headers: _Headers, exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        if self._is_begun and exc_info is not None:
            # The client already has the head of another answer (PEP 3333).
            raise exc_info[1]
        self._status, self._headers = status, headers
        return self._written_pieces.append

    def _send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        head = self._render_head(sum(map(len, pieces)))
        has_body = self._has_body()
        self.close()
        self._client.send_whole([head, *pieces] if has_body else [head])

    def _send_pieces(self) -> None:
        """Send pieces until the answer is complete, or the turn has produced `STREAM_BYTES`."""
        remaining_bytes = STREAM_BYTES
        for piece in self._pieces:
            if self._client.is_gone:
                self._abort()
                return
            remaining_bytes -= len(piece)
            self._post(
                partial(self._client.send_part, self.frame(piece), ends_turn=remaining_bytes <= 0)
            )
            if remaining_bytes <= 0:
                return
        self.close()
        self._post(self._client.send_last, self.frame(b"") + self.last_bytes)

    def _abort(self) -> None:
        self.close()
        self._post(self._client.abort_answer)

    def _refuse(self, error: ApiError) -> None:
        self.close()
        self._post(self._client.send_refusal, error)

    def _fail(self) -> None:
        _LOG.exception("The application failed")
        if self._is_begun:
            self._abort()
        else:
            detail = "The request could not be answered."
            self._refuse(ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, detail))

    def _has_body(self) -> bool:
        return self.head.method != "HEAD" and int(self._status[:3]) not in _NO_BODY

    def _render_head(self, length: int | None) -> bytes:
        """Return the head of the answer; the length of a stream is None.

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
        if "content-length" not in names and self._has_body():
            if length is not None:
                lines.append(f"Content-Length: {length}")
            elif self.head.is_http_1_0:
                # The end of the connection ends the body.
                self.head.keep_alive = False
            else:
                self._is_chunked = True
                lines.append("Transfer-Encoding: chunked")
        lines.append(f"Date: {format_http_date(now())}")
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header of the answer contains a line break")
        data = f"{text}\r\n{self._client.connection_headers()}\r\n".encode("latin-1")
        self._is_begun = True
        return data
