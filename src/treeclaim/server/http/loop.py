# SPDX-License-Identifier: Apache-2.0
"""An event loop whose turns are short, however many clients send at a time.

Each connection does a bounded piece of work in a turn, so a turn attends to few files. The kernel returns
ready files in a circle, so each has its turn.
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


class ShortSelector(selectors.EpollSelector):
    """Returns few ready files at a time."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until files are ready; the timeout is rounded up to milliseconds, as epoll needs."""
        wait = -1.0 if timeout is None else max(math.ceil(timeout * 1e3) * 1e-3, 0.0)
        try:
            ready = self._selector.poll(wait, EVENTS_AT_ONCE)  # type: ignore[attr-defined]
        except InterruptedError:
            return []
        # The documented view of the keys takes three calls for each file.
        keys, events_by_key = self._fd_to_key, []  # type: ignore[attr-defined]
        for number, events in ready:
            if (key := keys.get(number)) is not None:
                mask = selectors.EVENT_READ if events & ~select.EPOLLOUT else 0
                mask |= selectors.EVENT_WRITE if events & ~select.EPOLLIN else 0
                events_by_key.append((key, mask & key.events))
        return events_by_key


class ShortTurnLoop(asyncio.SelectorEventLoop):
    """The event loop of a process that answers requests."""

    def __init__(self) -> None:
        super().__init__(ShortSelector())

    def close(self) -> None:
        """Close the loop; a signal that arrives meanwhile is not written to a closed socket."""
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
        super().close()


def post(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any
) -> None:
    """Let a loop call a function soon, from any thread; a closed loop calls nothing."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise
