# SPDX-License-Identifier: Apache-2.0
"""Notices that a client has hung up whose connection is not read from.

A connection whose client has sent enough ahead is read from no more until its answer is taken, and so
its end is not read either. The kernel knows it nevertheless (`EPOLLRDHUP`), unless it stands behind
bytes for which its own buffer has no room. So after a while such bytes are read and dropped.
"""

import asyncio
import select
from contextlib import suppress
from itertools import islice
from typing import Protocol

from treeclaim.server.bounds import AHEAD_SECONDS

_MOST_EVENTS = 16
"""That are heard of in one turn of the event loop."""

_AT_ONCE = 256
"""Connections that read on in one turn."""


class Unread(Protocol):
    """A connection that is not read from."""

    def note_hangup(self) -> None:
        """Note that the client sends no more."""

    def read_past(self) -> None:
        """Read on, and drop what comes."""


class Hangups:
    """The connections of a process that are not read from; the event loop calls all of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._unread: dict[int, tuple[Unread, float]] = {}
        loop.add_reader(self._epoll.fileno(), self._tell)

    def watch(self, unread: Unread, number: int) -> None:
        """Tell a connection when its client hangs up.

        Args:
            unread: The connection.
            number: The file descriptor of its socket.
        """
        if not self._has(unread, number):
            self._unread[number] = (unread, self._loop.time())
            self._epoll.register(number, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def forget(self, unread: Unread, number: int) -> None:
        """Tell it no more: it is read from again, or closed."""
        # The number of a socket that is closed may be that of another connection by now.
        if self._has(unread, number):
            del self._unread[number]
            # The kernel forgets what is closed.
            with suppress(OSError):
                self._epoll.unregister(number)

    def _has(self, unread: Unread, number: int) -> bool:
        return number in self._unread and self._unread[number][0] is unread

    def sweep(self, now: float) -> None:
        """Let those read on that have waited long enough."""
        for number, (unread, since) in list(islice(self._unread.items(), _AT_ONCE)):
            if now - since < AHEAD_SECONDS:
                return
            # Whoever does not need to read on comes last from now on.
            del self._unread[number]
            self._unread[number] = (unread, now)
            unread.read_past()

    def close(self) -> None:
        """Watch nothing any more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _tell(self) -> None:
        for number, _ in self._epoll.poll(0, _MOST_EVENTS):
            found = self._unread.get(number)
            if found is not None:
                found[0].note_hangup()
