# SPDX-License-Identifier: Apache-2.0
"""The event loop of a process that answers requests, and thread-safe calls into it."""

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Any


class ServerLoop(asyncio.SelectorEventLoop):
    """An event loop that ignores signals while it closes."""

    def close(self) -> None:
        """Close the loop; first detach it from signals, which would be written to a closed socket."""
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
        super().close()


def post(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: Any
) -> None:
    """Schedule a call in a loop, from any thread; do nothing if the loop is closed."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise
