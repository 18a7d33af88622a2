# SPDX-License-Identifier: Apache-2.0
"""Notices that a client whose connection is not read from sends no more, or is gone.

A connection whose client has sent enough ahead is read from no more until its answer is taken, and so
its end is not read either. The kernel knows it nevertheless (`EPOLLRDHUP`), unless it stands behind
bytes for which its own buffer has no room. So after a while such bytes are read and dropped.

A client that sends no more may still read. Whether it does shows when it is sent something: a client that is
gone resets the connection, which nobody reads from any more (`EPOLLHUP`, `EPOLLERR`).
"""

import asyncio
import select
from contextlib import suppress
from itertools import islice
from typing import Protocol

from treeclaim.server.bounds import AHEAD_SECONDS

_MOST_EVENTS = 16
"""How many hang-ups are handled in one turn of the event loop."""

_AT_ONCE = 256
"""Connections that read on in one turn."""


class Unread(Protocol):
    """A connection that is not read from."""

    def note_end(self) -> None:
        """Note that the client sends no more."""

    def note_gone(self) -> None:
        """Note that the client has closed the connection."""

    def read_past(self) -> None:
        """Read on, and drop what comes."""


class Hangups:
    """The connections of a process that are not read from; the event loop calls all of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._known: dict[int, Unread] = {}
        self._unread: dict[int, float] = {}
        """Since when those are not read from that have not been read to their end."""
        loop.add_reader(self._epoll.fileno(), self._tell)

    def watch(self, unread: Unread, number: int) -> None:
        """Tell a connection when its client sends no more, and when it is gone."""
        if not self._has(unread, number):
            self._known[number] = unread
            self._unread[number] = self._loop.time()
            self._epoll.register(number, select.EPOLLRDHUP | select.EPOLLONESHOT)

    def watch_ended(self, ended: Unread, number: int) -> None:
        """Tell a connection that was read to its end when its client is gone."""
        if not self._has(ended, number):
            self._known[number] = ended
            self._epoll.register(number, select.EPOLLONESHOT)

    def forget(self, unread: Unread, number: int) -> None:
        """Tell it no more: it is read from again, or closed."""
        # The number of a socket that is closed may be that of another connection by now.
        if self._has(unread, number):
            del self._known[number]
            self._unread.pop(number, None)
            # The kernel forgets what is closed.
            with suppress(OSError):
                self._epoll.unregister(number)

    def _has(self, unread: Unread, number: int) -> bool:
        return self._known.get(number) is unread

    def sweep(self, now: float) -> None:
        """Let those read on that have waited long enough."""
        for number, since in list(islice(self._unread.items(), _AT_ONCE)):
            if now - since < AHEAD_SECONDS:
                return
            # Those that need not read on come last from now on.
            del self._unread[number]
            self._unread[number] = now
            self._known[number].read_past()

    def close(self) -> None:
        """Watch nothing any more."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _tell(self) -> None:
        for number, events in self._epoll.poll(0, _MOST_EVENTS):
            watched = self._known.get(number)
            if watched is None:
                continue
            if events & (select.EPOLLHUP | select.EPOLLERR):
                watched.note_gone()
            else:
                self._epoll.modify(number, select.EPOLLONESHOT)
                watched.note_end()
