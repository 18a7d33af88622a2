# SPDX-License-Identifier: Apache-2.0
"""One request and its answer: the part that runs in threads.

A thread runs the application. An answer in one piece goes to the event loop as it is. A streamed
one is made in turns of some pieces; between them no thread is held while the client reads. So the
pieces of one answer may be made by several threads, never by two at a time.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from treeclaim.server.bounds import GONE_SECONDS, STREAM_BYTES, WAITING_SECONDS
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.parking import PARKING_KEY, ParkedError, Parking
from treeclaim.server.http.refusals import RefusedError
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.sharing.watchers import Watch, WatcherPlace, Watchers

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

_LOG = logging.getLogger(__name__)

_Headers = list[tuple[str, str]]
_NO_BODY = (204, 304)
_LAST_CHUNK = b"0\r\n\r\n"

ADOPT_KEY = "treeclaim.adopt"
"""The key of the WSGI environment under which the application finds the function that takes a `Watch`."""

PIECES_KEY = "treeclaim.takes_pieces"
"""The key that tells the application that it may return a list of memoryviews, sent as one answer."""

_HOP_BY_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "upgrade", "trailer"))
"""Headers that only the server writes."""


class ClientConnection(Protocol):
    """The connection, as threads see it.

    Attributes:
        gone: Whether the client has hung up.
        hold: Where the bytes of the request are counted.
    """

    gone: bool
    hold: HeldBytes

    def closing_headers(self) -> str:
        """Return the headers that say what becomes of the connection after this answer."""

    def post(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the answer."""

    def post_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send a whole answer."""

    def post_turn(self) -> None:
        """Say that the next pieces are made when the client has taken these."""

    @property
    def watchers(self) -> Watchers:
        """All that watch in this process."""

    def post_watch(self, data: bytes, watch: Watch, place: WatcherPlace) -> None:
        """Send the beginning of an answer; the rest comes from a watch."""

    def post_refusal(self, error: RefusedError) -> None:
        """Answer without the application."""

    def post_abort(self) -> None:
        """Break the connection off: the answer cannot be finished."""

    def proceed(self, job: Callable[[], None]) -> None:
        """Go on with a request that was begun, in a thread."""


class Exchange:
    """One request, until its answer is made; until then its bytes are counted."""

    def __init__(
        self,
        application: "WSGIApplication",
        client: ClientConnection,
        head: RequestHead,
        date: str,
    ) -> None:
        self._application = application
        self._client = client
        self._head = head
        self._date = date
        self._came = time.monotonic()
        self._status = ""
        self._headers: _Headers = []
        self._early: list[bytes] = []
        self._result: Iterable[bytes] | None = None
        self._pieces: Iterator[bytes] | None = None
        self._is_chunked = False
        self._left: int | None = None
        self._is_begun = False
        self._watch: Watch | None = None
        self._place: WatcherPlace | None = None
        self._size = head.size
        client.hold.add(head.size)
        head.environment[ADOPT_KEY] = self._adopt
        head.environment[PIECES_KEY] = True
        head.environment[PARKING_KEY] = Parking(lambda: client.proceed(self.run))

    def run(self) -> None:
        """Run the application, and make the answer or its first pieces."""
        waited = time.monotonic() - self._came
        if self._client.gone and waited > GONE_SECONDS:
            self.close()
            self._client.post_abort()
            return
        if waited > WAITING_SECONDS:
            self.close()
            self._client.post_refusal(
                RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests wait.")
            )
            return
        try:
            self._head.fill()
            # Its layers change what they are given, and it may begin anew.
            environment = self._head.environment.copy()
            self._result = self._application(environment, self._start_response)
            watch, place = self._watch, self._place
            if watch is not None and place is not None and self._status.startswith("200"):
                self._hand_over(watch, place)
            elif isinstance(self._result, list | tuple):
                self._send_whole([*self._early, *self._result])
            else:
                self._pieces = iter(self._result)
                self._take_turn()
        except ParkedError:
            # This runs again, perhaps in another thread by now.
            return
        except Exception:  # noqa: BLE001 - the connection goes on, or is broken off
            _LOG.exception("The application failed")
            self._fail()

    def go_on(self) -> None:
        """Make the next pieces."""
        try:
            self._take_turn()
        except Exception:  # noqa: BLE001 - the connection goes on, or is broken off
            _LOG.exception("The application failed in the middle of an answer")
            self._fail()

    def framed(self, piece: bytes) -> bytes:
        """Return a piece of a begun answer as it is sent."""
        return self._framed(piece)

    @property
    def last_bytes(self) -> bytes:
        """What ends a begun answer, where that is not told by closing the connection."""
        return _LAST_CHUNK if self._is_chunked else b""

    def _adopt(self, watch: Watch) -> bool:
        """Let the application continue its answer with the news of a watch.

        Returns:
            Whether there is room for another watcher.
        """
        if self._place is not None:
            return False
        self._place = self._client.watchers.reserve(self._client.hold, watch)
        if self._place is None:
            return False
        self._watch = watch
        return True

    def _hand_over(self, watch: Watch, place: WatcherPlace) -> None:
        """Send the beginning of the answer, and leave the rest to the event loop."""
        opening = b"".join([*self._early, *(self._result or ())])
        data = self._begin() + (self._framed(opening) if opening else b"")
        self._watch = self._place = None
        self.close()
        self._client.post_watch(data, watch, place)

    def close(self) -> None:
        """Close the application's iterator, and release what was held for this answer.

        The request's data refers to this exchange and to its connection, and they refer to it;
        and the collector, which frees such cycles, runs rarely.
        """
        close: Callable[[], None] | None = getattr(self._result, "close", None)
        self._result = self._pieces = None
        watch, place = self._watch, self._place
        self._watch = self._place = None
        if watch is not None and place is not None:
            # A layer of the application has replaced the answer.
            watch.close()
            place.give_back()
        if close is not None:
            try:
                close()
            except Exception:  # noqa: BLE001 - the connection goes on, or is broken off
                _LOG.exception("The application failed at the end of an answer")
        self._head.environment = {}
        self._head.body = None
        size, self._size = self._size, 0
        self._client.hold.add(-size)

    def _start_response(
        self, status: str, headers: _Headers, exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        if self._is_begun and exc_info is not None:
            raise exc_info[1]
        self._status, self._headers = status, headers
        return self._early.append

    def _send_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        has_body = self._has_body()
        length = sum(map(len, pieces)) if has_body else None
        head = self._head_bytes(length=length)
        self.close()
        self._client.post_whole([head, *pieces] if has_body else [head])

    def _take_turn(self) -> None:
        """Send pieces until enough are on their way, or all are made."""
        room = STREAM_BYTES
        while room > 0:
            if self._client.gone:
                self.close()
                self._client.post_abort()
                return
            piece = self._next_piece()
            if piece is None:
                self._end()
                return
            if piece:
                room -= len(piece)
                self._client.post(self._framed(piece), is_last=False)
        self._client.post_turn()

    def _next_piece(self) -> bytes | None:
        if self._early:
            return self._early.pop(0)
        return None if self._pieces is None else next(self._pieces, None)

    def _framed(self, piece: bytes) -> bytes:
        begin = b"" if self._is_begun else self._begin()
        if not self._has_body():
            return begin
        if self._left is not None:
            piece = piece[: self._left]
            self._left -= len(piece)
        return begin + (b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def _begin(self) -> bytes:
        """Return the head of a streamed answer, and know how its end will be told."""
        announced = next(
            (value for name, value in self._headers if name.lower() == "content-length"), None
        )
        self._left = None if announced is None else int(announced)
        self._is_chunked = announced is None and not self._head.is_http_1_0 and self._has_body()
        return self._head_bytes(length=None, ends_by_closing=announced is None)

    def _end(self) -> None:
        self.close()
        begin = b"" if self._is_begun else self._begin()
        if self._left and self._has_body():
            _LOG.error("An answer has %s bytes less than it announced", self._left)
            self._client.post_abort()
        else:
            self._client.post(begin + self.last_bytes, is_last=True)

    def _fail(self) -> None:
        self.close()
        if self._is_begun:
            self._client.post_abort()
        else:
            self._client.post_refusal(
                RefusedError(
                    HTTPStatus.INTERNAL_SERVER_ERROR, "The request could not be answered."
                )
            )

    def _has_body(self) -> bool:
        return self._head.method != "HEAD" and int(self._status[:3]) not in _NO_BODY

    def _head_bytes(self, *, length: int | None, ends_by_closing: bool = False) -> bytes:
        """Return the head of the answer.

        Args:
            length: The length of the body, sent unless the application sends it.
            ends_by_closing: Whether nothing else tells where the body ends.

        Raises:
            ValueError: if a header would end its line.
        """
        names = [name.lower() for name, _ in self._headers]
        lines = [f"HTTP/1.1 {self._status}"]
        lines += [
            f"{name}: {value}"
            for known_as, (name, value) in zip(names, self._headers, strict=True)
            if known_as not in _HOP_BY_HOP
        ]
        if length is not None and "content-length" not in names:
            lines.append(f"Content-Length: {length}")
        elif self._is_chunked:
            lines.append("Transfer-Encoding: chunked")
        elif ends_by_closing and self._has_body():
            self._head.keep_alive = False
        lines.append(f"Date: {self._date}")
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header of the answer would end its line")
        data = f"{text}\r\n{self._client.closing_headers()}\r\n".encode("latin-1")
        self._is_begun = True
        return data
