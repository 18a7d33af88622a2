# SPDX-License-Identifier: Apache-2.0
"""What a connection reads: how much at a time, and whether at all.

Before anything is read it is asked how much more may be held. Where that is nothing, reading stops, and
so does the client, as the kernel's buffers fill up: until there is room in the account, or until the
answer is taken before which the client has sent too much.
"""

import asyncio
import socket

from treeclaim.server.bounds import AHEAD_BYTES, LINGER_BYTES
from treeclaim.server.connection.reading import RequestReader
from treeclaim.server.connection.shared import Shared
from treeclaim.server.sharing.account import HeldBytes
from treeclaim.server.sharing.hangups import Unread


class Intake:
    """The bytes that come from a client.

    Attributes:
        reader: Where they go.
        is_ahead: Whether what comes now is sent ahead, while an answer is under way.
        has_waited: Whether the client had to wait for room in the account, with this request.
        has_ended: Whether all has been read that the client will ever send.
    """

    def __init__(
        self,
        front: Shared,
        owner: Unread,
        accepted: socket.socket,
        transport: asyncio.Transport,
        hold: HeldBytes,
    ) -> None:
        self.reader = RequestReader(hold, front.limits.body_bytes)
        self.is_ahead = False
        self.has_waited = False
        self.has_ended = False
        self._front = front
        self._owner = owner
        self._number = accepted.fileno()
        self._transport = transport
        self._hold = hold
        self._is_paused = False

    @property
    def is_reading(self) -> bool:
        """Whether what comes is read as soon as it has its turn."""
        return not self._is_paused

    @property
    def may_have_more(self) -> bool:
        """Whether there is, or may be, something that is not read as a request."""
        return self._is_paused or not self.reader.is_empty or self.reader.dropped is not None

    def buffer(self) -> memoryview:
        """Return where the next bytes come; never longer than what may be held."""
        return self._front.buffer[: max(self._room(), 1)]

    def take(self, size: int) -> None:
        """Take bytes out of the buffer."""
        self.reader.take(self._front.buffer[:size])

    def regulate(self) -> None:
        """Stop to read, or read on, as there is room or not."""
        if self._room() <= 0:
            self._pause()
        elif self._is_paused:
            self._resume()

    def await_reset(self) -> None:
        """Have the owner told when a client is gone that sends no more."""
        self._front.hangups.watch_ended(self._owner, self._number)

    def close(self) -> None:
        """Release all."""
        self._forget()
        self.reader.drop()

    def _room(self) -> int:
        reader = self.reader
        if reader.dropped is not None:
            return reader.piece if reader.dropped <= LINGER_BYTES else 0
        if self.is_ahead:
            return min(AHEAD_BYTES - reader.ahead, self._hold.room)
        return min(reader.piece, self._hold.ask_for_room())

    def _pause(self) -> None:
        if self._transport.is_closing():
            return
        if not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        if self.is_ahead:
            self._front.hangups.watch(self._owner, self._number)
        else:
            self._forget()
            self.has_waited = True
            self._hold.wait_for_room()

    def _resume(self) -> None:
        self._forget()
        self._is_paused = False
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _forget(self) -> None:
        self._front.account.waiting.pop(self._hold, None)
        self._front.hangups.forget(self._owner, self._number)
