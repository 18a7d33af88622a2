# SPDX-License-Identifier: Apache-2.0
"""An event loop whose turns are short, however many clients send at a time.

A turn of asyncio's loop attends to all that is ready. Each connection does a bounded piece of work in a
turn, but a thousand of them would make it long. So a turn looks at few. The kernel hands out those that
are ready in a circle, so all have their turn. What asks whether the loop turns at all is looked at in each
turn: it must not wait for a circle.
"""

import asyncio
import math
import select
import selectors
import signal
import threading
from collections.abc import Callable
from typing import Any

from treeclaim.server.bounds import EVENTS_AT_ONCE


class FewAtOnce(selectors.EpollSelector):
    """Tells of few files at a time, and of urgent ones besides."""

    def __init__(self) -> None:
        super().__init__()
        self._urgent = select.epoll()

    def hurry(self, number: int) -> None:
        """Look at a file that is registered for reading in each turn."""
        self._urgent.register(number, select.EPOLLIN)

    def close(self) -> None:
        """Close both."""
        self._urgent.close()
        super().close()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until some are ready; seconds are rounded up to milliseconds, which epoll counts."""
        wait = -1.0 if timeout is None else max(math.ceil(timeout * 1e3) * 1e-3, 0.0)
        try:
            ready = self._selector.poll(wait, EVENTS_AT_ONCE)  # type: ignore[attr-defined]
        except InterruptedError:
            return []
        if len(ready) == EVENTS_AT_ONCE:
            ready = list({**dict(self._urgent.poll(0)), **dict(ready)}.items())
        # A view of it would be asked three times for each file.
        keys, events_by_key = self._fd_to_key, []  # type: ignore[attr-defined]
        for number, events in ready:
            if (key := keys.get(number)) is not None:
                mask = selectors.EVENT_READ if events & ~select.EPOLLOUT else 0
                mask |= selectors.EVENT_WRITE if events & ~select.EPOLLIN else 0
                events_by_key.append((key, mask & key.events))
        return events_by_key


class ShortTurns(asyncio.SelectorEventLoop):
    """The event loop of a process that answers requests."""

    def __init__(self) -> None:
        self._few = FewAtOnce()
        super().__init__(self._few)

    def close(self) -> None:
        """Close it; a signal that comes from now on is told to nobody, and not to a closed socket."""
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
        super().close()

    def hurry(self, number: int) -> None:
        """Look at a file that has a reader in each turn, whatever else is ready."""
        self._few.hurry(number)


def post(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any
) -> None:
    """Have a loop call a function soon; threads call this.

    A loop that has been closed calls nothing: its connections are gone, and a thread that still works for
    one of them goes on to its end.
    """
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise


def new_loop() -> ShortTurns:
    """Return the event loop of a process that answers requests."""
    return ShortTurns()
