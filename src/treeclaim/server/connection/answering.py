# SPDX-License-Identifier: Apache-2.0
"""The answer that a connection is giving, from the request's last byte to the answer's.

`Exchange` makes it, in threads; `AnswerWriter` sends it. Beside the phase of its connection an answer
knows whether the connection is kept after it (`is_kept`), what follows when the client has taken what
was sent (`_next`), and whether a thread has sent all of it without the event loop (`_is_sent`).
"""

import logging
import math
from collections.abc import Callable, Sequence
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Protocol

from treeclaim.server.connection.shared import Shared
from treeclaim.server.connection.writing import AnswerWriter, Watching, rest_of
from treeclaim.server.http.exchange import Exchange
from treeclaim.server.http.head import RequestHead
from treeclaim.server.http.refusals import RefusedError, refusal
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.sharing.table import Phase
from treeclaim.server.sharing.watchers import Watch, WatcherPlace, Watchers

_LOG = logging.getLogger(__name__)

NEVER = math.inf


class _Next(Enum):
    MORE = auto()
    """A thread, or a watch, makes more of the answer."""

    TURN = auto()
    """A thread is to make more."""

    END = auto()
    """That was all."""


class Giver(Protocol):
    """The connection, as its answer sees it.

    Attributes:
        phase, deadline: See `Connection`.
        hold: Where bytes are counted.
    """

    phase: Phase
    deadline: float
    hold: HeldBytes

    def enter(self, phase: Phase, deadline: float) -> None:
        """Begin another phase."""

    def finish(self) -> None:
        """Go on after an answer."""

    def drop(self) -> None:
        """Close at once."""

    @property
    def may_have_more(self) -> bool:
        """Whether more requests may have come."""

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""


class Answering:
    """The answers of one connection, one after the other.

    Everything runs in the event loop except `closing_headers`, `proceed` and the methods named `post...`,
    which threads call.

    Attributes:
        gone: Whether the client has closed the connection.
        has_ended: Whether it sends no more. It may still read: an answer is made whole, and a watch,
            which has no end of its own, ends as a whole.
        is_kept: Whether the connection stays open after this answer.
        hold: Where bytes are counted.
    """

    def __init__(
        self, front: Shared, giver: Giver, writer: AnswerWriter, environment: dict[str, Any]
    ) -> None:
        """Wait for a request.

        Args:
            front: What the process shares among its connections.
            giver: The connection.
            writer: That sends to the client.
            environment: The part of the WSGI environment that all requests of the connection share.
        """
        self.gone = False
        self.has_ended = False
        self.is_kept = True
        self.hold = giver.hold
        self._front = front
        self._giver = giver
        self._writer = writer
        self._environment = environment | {"treeclaim.client_gone": self.is_gone}
        writer.on_taken = self._go_on
        self._head: RequestHead | None = None
        self._exchange: Exchange | None = None
        self._watching: Watching | None = None
        self._next = _Next.MORE
        self._is_sent = False

    def begin(self, head: RequestHead, *, may_keep: bool) -> None:
        """Have a request answered."""
        self._head = head
        self.is_kept = head.keep_alive and may_keep
        head.environment.update(self._environment)
        self._exchange = Exchange(self._front.application, self, head, self._front.date())
        self._giver.enter(Phase.ANSWERING, NEVER)
        self._writer.begin()
        if not self._front.pool.offer(self._exchange.run):
            self._exchange.close()
            self.refuse(RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests wait."))

    def settle(self) -> bool:
        """Finish an answer that a thread has sent, and return whether there was one."""
        if not self._is_sent:
            return False
        self._is_sent = False
        if not self._giver.is_closing:
            self._finish()
        return True

    def _go_on(self) -> None:
        """Go on with an answer after the client has read what was sent."""
        if self._giver.phase is not Phase.SENDING:
            return
        self._giver.enter(Phase.ANSWERING, NEVER)
        if self._next is _Next.END:
            self._finish()
        elif self._watching is not None:
            self._giver.enter(Phase.WATCHING, NEVER)
            self.attend()
        elif self._next is _Next.TURN and self._exchange is not None:
            self._next = _Next.MORE
            self._front.pool.proceed(self._exchange.go_on)

    def give_time_to_take(self) -> None:
        """Give the client its time to read some of what was sent."""
        self._writer.start_measuring()
        self._giver.deadline = self._front.loop.time() + self._front.limits.answer_seconds

    def refuse(self, error: RefusedError) -> None:
        """Answer without the application."""
        if self._giver.is_closing:
            return
        peer = self._environment.get("REMOTE_ADDR", "-")
        _LOG.info("Refused a request of %s: %s %s", peer, error.status.value, error.detail)
        data = refusal(error, self._front.date(), self.closing_headers())
        self._writer.announce(len(data))
        self._send(data, is_last=True)

    def note_end(self) -> None:
        """Note that the client sends no more."""
        self.has_ended = True
        # With TLS that is the end of the connection.
        self.gone = self.gone or self._front.is_tls
        self.settle()
        self.attend()

    def probe(self) -> None:
        """Find out whether a client that sends no more still reads, before work is done for it.

        HTTP/1.0 knows no interim answers: such a client is believed.
        """
        head = self._head
        if self._giver.phase is Phase.ANSWERING and head is not None and not head.is_http_1_0:
            self._writer.probe()

    def lose(self) -> None:
        """Release all: the connection is closed."""
        self.gone = True
        self._writer.lose()
        self._end_watch()
        # A turn that is under way learns of it at its end.
        if self._next is _Next.TURN and self._exchange is not None:
            self._front.pool.proceed(self._exchange.close)
            self._exchange = None

    def drop(self) -> None:
        """Break the connection off."""
        self._giver.drop()

    def _send(self, data: bytes, is_last: bool) -> None:  # noqa: FBT001 - call_soon has no names
        self._writer.write(data)
        if self._giver.is_closing:
            return
        if is_last:
            self._next = _Next.END
        if self._writer.is_blocked:
            if self._giver.phase is not Phase.SENDING:
                self._giver.enter(Phase.SENDING, NEVER)
                self.give_time_to_take()
            self.hold.settle()
        elif is_last:
            self._finish()

    def _end_turn(self) -> None:
        if self._exchange is None:
            return
        if self._writer.is_lost:
            self._front.pool.proceed(self._exchange.close)
            self._exchange = None
        elif self._writer.is_blocked:
            self._next = _Next.TURN
        else:
            self._front.pool.proceed(self._exchange.go_on)

    def _finish(self) -> None:
        self._exchange = self._head = None
        self._next = _Next.MORE
        self._giver.finish()

    # What threads call.

    def is_gone(self) -> bool:
        """Return whether the client has closed the connection."""
        return self.gone

    def closing_headers(self) -> str:
        """Return the headers that tell the client whether the connection stays open."""
        head = self._head
        if self._front.is_stopping or (head is not None and not head.keep_alive):
            self.is_kept = False
        if not self.is_kept:
            return "Connection: close\r\n"
        if head is not None and head.is_http_1_0:
            return f"Connection: keep-alive\r\n{self._front.keep_alive_header}"
        return self._front.keep_alive_header

    def post(self, data: bytes, *, is_last: bool) -> None:
        """Send a part of the answer."""
        self._writer.announce(len(data))
        self._front.call(self._send, data, is_last)

    def post_whole(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Send a whole answer, from this thread as far as the kernel takes it at once.

        Leaving that to the event loop would cost another switch of threads, which is half of the
        time of a small answer; so would telling the loop about it.
        """
        sent = 0 if self._front.is_tls else self._writer.send_now(pieces)
        if sent == sum(map(len, pieces)) and self.is_kept:
            # The loop learns of it with the next data, or when it looks at deadlines. Either the
            # loop sees the flag, or this thread sees the data: both write first and look then.
            self._giver.deadline = 0.0
            self._is_sent = True
            if self._giver.may_have_more or self.has_ended or self._front.account.waiting:
                self._front.call(self.settle)
        else:
            self.post(rest_of(pieces, sent), is_last=True)

    def post_turn(self) -> None:
        """Make the next pieces when the client has taken these."""
        self._front.call(self._end_turn)

    def proceed(self, job: Callable[[], None]) -> None:
        """Go on with a request that was begun, in a thread."""
        self._front.pool.proceed(job)

    def post_refusal(self, error: RefusedError) -> None:
        """Answer without the application."""
        self._front.call(self.refuse, error)

    def post_abort(self) -> None:
        """Break the connection off."""
        self._front.call(self.drop)

    # Watching.

    @property
    def watchers(self) -> Watchers:
        """All that watch in this process."""
        return self._front.watchers

    def post_watch(self, data: bytes, watch: Watch, place: WatcherPlace) -> None:
        """Send the beginning of an answer; the rest comes from a watch."""
        self._writer.announce(len(data))
        self._front.call(self._begin_watch, data, watch, place)

    def _begin_watch(self, data: bytes, watch: Watch, place: WatcherPlace) -> None:
        exchange = self._exchange
        if exchange is None or self._giver.is_closing:
            self._writer.announce(-len(data))
            watch.close()
            place.give_back()
            return
        self._watching = Watching(self.watchers, self, watch, place, exchange)
        self._giver.enter(Phase.WATCHING, NEVER)
        self._writer.write(data)
        # What became news before the watch could wake anybody is sent now.
        self.attend()

    def attend(self) -> None:
        """Send pending data to a watcher that has taken the data before."""
        watching = self._watching
        if watching is None or self._giver.phase is not Phase.WATCHING:
            return
        data = watching.next_bytes(ends=self.has_ended or self._front.is_stopping)
        self._giver.deadline = watching.due
        if watching.is_over:
            self._end_watch()
            self._giver.enter(Phase.ANSWERING, NEVER)
            self.is_kept = self.is_kept and not self._front.is_stopping
        self._writer.announce(len(data))
        self._send(data, is_last=self._watching is None)

    def _end_watch(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()
