# SPDX-License-Identifier: Apache-2.0
"""One connection: what it is in the middle of, and what ends that.

    OPENING ──▶ READING ──a head──▶ RECEIVING ──its body──▶ ANSWERING ◀──▶ WATCHING
                   ▲                                        │  │   ▲         │
                   └──────── IDLE ◀──all taken, is kept ────┘  ▼   │ taken   ▼
                                                            SENDING ◀────────┘
    closed ◀── LINGERING ◀──all taken, is not kept ────────────┘

`Phase` says what each waits for, and each has its deadline: the table of connections calls `expire`
when it has passed. `Intake` reads what comes, `Answering` gives the answer, and all that either keeps
is counted in the one `HeldBytes` of the connection.
"""

import asyncio
import socket
from http import HTTPStatus
from typing import cast

from treeclaim.server.bounds import LINGER_BYTES, LINGER_SECONDS, SWEEP_SECONDS
from treeclaim.server.connection.answering import NEVER, Answering
from treeclaim.server.connection.intake import Intake
from treeclaim.server.connection.shared import Shared
from treeclaim.server.connection.writing import CONTINUE, AnswerWriter, has_unread
from treeclaim.server.http.refusals import RefusedError
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.sharing.table import Phase

_BEFORE_ANSWER = (Phase.OPENING, Phase.READING, Phase.RECEIVING, Phase.IDLE)
_YIELDING = (Phase.READING, Phase.RECEIVING, Phase.SENDING)
"""Phases in which a connection may be told to give up what it holds."""


class Connection(asyncio.BufferedProtocol):
    """A client's connection; everything runs in the event loop.

    Attributes:
        phase: What the connection waits for; the table of connections sets it.
        deadline: When the phase ends, in the loop's time. A thread sets it to 0 with an answer.
        hold: The bytes that it holds.
    """

    def __init__(self, front: Shared, accepted: socket.socket) -> None:
        """Wait for the first request."""
        self.phase = Phase.OPENING
        self.deadline = front.loop.time() + front.limits.header_seconds
        self.hold = HeldBytes(front.account, self)
        self._front = front
        self._socket = accepted
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._writer: AnswerWriter = cast("AnswerWriter", None)
        self._intake: Intake = cast("Intake", None)
        self._answering: Answering = cast("Answering", None)
        self._is_made = False

    def enter(self, phase: Phase, deadline: float) -> None:
        """Begin another phase."""
        self._front.table.move(self, phase)
        self.deadline = deadline
        self.hold.let_yield(phase in _YIELDING)
        self._intake.is_ahead = phase not in _BEFORE_ANSWER
        self._intake.regulate()

    def _in(self, seconds: float) -> float:
        return self._front.loop.time() + seconds

    @property
    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    @property
    def may_have_more(self) -> bool:
        """Whether more requests may have come."""
        return self._intake.may_have_more

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Enter the table of connections."""
        front, made = self._front, cast("asyncio.Transport", transport)
        self._transport = made
        self._intake = Intake(front, self, self._socket, made, self.hold)
        self._writer = AnswerWriter(self._socket, made, self.hold, front.loop)
        self._answering = Answering(front, self, self._writer, front.environment_of(made))
        self._is_made = True
        front.note_made(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's
        """Return where the next bytes come."""
        return self._intake.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes from the client."""
        self._answering.settle()
        self._intake.take(nbytes)
        # A thread that sends the last of an answer now has seen these bytes, or is seen here.
        self._answering.settle()
        self._read()
        if self.phase is Phase.LINGERING and (self._intake.reader.dropped or 0) > LINGER_BYTES:
            self.drop()
        self._intake.regulate()

    def eof_received(self) -> bool:
        """Note that the client sends no more; return whether it may still get its answer."""
        self._intake.has_ended = True
        self.note_end()
        if self.phase in (*_BEFORE_ANSWER, Phase.LINGERING) or self._front.is_tls:
            return False
        self._intake.await_reset()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Release all that the connection holds."""
        self._front.table.remove(self)
        self.hold.let_yield(False)
        self._intake.close()
        self._answering.lose()
        self._front.account.wake()
        self._front.note_closed()

    def pause_writing(self) -> None:
        """Note that the client has not read everything that was sent; TLS may cause this as well."""
        # TLS says it of its handshake too, before there is a connection.
        if self._is_made:
            self._writer.is_full = True

    def resume_writing(self) -> None:
        """Note that the client has read everything that was sent."""
        if self._is_made:
            self._writer.is_full = False
            self._writer.write_on()

    # What the table, the account and the list of hangups call.

    def expire(self) -> None:
        """Act on a deadline that has passed."""
        if self._answering.settle():
            return
        if self.phase is Phase.WATCHING:
            self._answering.attend()
        elif self.phase in _BEFORE_ANSWER and self._intake.is_reading and has_unread(self._socket):
            # They came in time, and have their turn soon.
            self.deadline = self._in(SWEEP_SECONDS)
        elif self.phase in (Phase.READING, Phase.RECEIVING):
            self._refuse_late()
        elif self.phase is Phase.SENDING and self._writer.has_taken_enough():
            self._answering.give_time_to_take()
        else:
            self._front.note_dropped(self.phase)
            self.drop()

    def drop(self) -> None:
        """Close at once and discard what is unsent."""
        self._front.table.remove(self)
        self._transport.abort()

    def stop_if_unused(self) -> None:
        """Close if no request is under way."""
        self._answering.settle()
        if self.phase in (Phase.OPENING, Phase.IDLE):
            self._transport.close()

    def give_up(self) -> None:
        """Release what has come of a request, or the unread part of an answer."""
        if self.phase is Phase.SENDING:
            self.drop()
        else:
            self._refuse_late()

    def read_on(self) -> None:
        """Read again: there is room."""
        self._intake.regulate()

    def note_end(self) -> None:
        """Note that the client sends no more; whether it still reads is found out."""
        self._answering.note_end()
        self._read()
        self._answering.probe()

    def note_gone(self) -> None:
        """Note that the client has closed the connection."""
        self.drop()

    def read_past(self) -> None:
        """Drop what the client has sent ahead, to see its end; the connection is not kept then."""
        if self.phase in (Phase.ANSWERING, Phase.WATCHING):
            self._answering.is_kept = False
            self._intake.reader.drop()
            self._intake.regulate()

    # Reading.

    def _read(self) -> None:
        """Begin to answer a request if it is complete; those behind it have their turns."""
        if self.phase not in _BEFORE_ANSWER or self.is_closing:
            return
        try:
            head = self._intake.reader.request()
        except RefusedError as error:
            self._refuse(error)
            return
        if head is None:
            self._await_rest()
        else:
            self._intake.has_waited = False
            may_keep = self._intake.reader.dropped is None
            self._answering.begin(head, may_keep=may_keep)

    def _await_rest(self) -> None:
        """Give the client its time for the rest of a request."""
        reader, limits = self._intake.reader, self._front.limits
        if self._intake.has_ended:
            self._transport.close()
        elif reader.head is not None:
            if self.phase is not Phase.RECEIVING:
                self.enter(Phase.RECEIVING, self._in(limits.body_seconds))
                if reader.wants_continue:
                    self._transport.write(CONTINUE)
        elif self.phase is not Phase.READING and not reader.is_empty:
            # Empty lines between requests give nobody more time.
            is_first = self.phase is Phase.OPENING
            end = self.deadline if is_first else self._in(limits.header_seconds)
            self.enter(Phase.READING, end)

    def _refuse_late(self) -> None:
        if self._intake.has_waited:
            error = RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests have come.")
        else:
            error = RefusedError(
                HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive."
            )
        self._refuse(error)

    def _refuse(self, error: RefusedError) -> None:
        """Answer what is not a request, or is too late; nothing can be read behind it."""
        if self.is_closing:
            return
        self._intake.reader.drop()
        self._answering.is_kept = False
        self.enter(Phase.ANSWERING, NEVER)
        self._answering.refuse(error)

    # After an answer.

    def finish(self) -> None:
        """Close the connection, or get ready for the next request."""
        intake, is_kept = self._intake, self._answering.is_kept
        self._front.account.wake()
        if not intake.may_have_more and (intake.has_ended or not is_kept):
            self._transport.close()
        elif is_kept:
            self.enter(Phase.IDLE, self._in(self._front.limits.keep_alive_seconds))
            if not intake.reader.is_empty:
                self._front.loop.call_soon(self._read)
        else:
            self._linger()

    def _linger(self) -> None:
        """Read on for a while: to close with data unread resets the connection and the answer."""
        self._intake.reader.drop()
        self.enter(Phase.LINGERING, self._in(LINGER_SECONDS))
        if self._intake.has_ended:
            self._transport.close()
        elif self._transport.can_write_eof():
            self._transport.write_eof()
