# SPDX-License-Identifier: Apache-2.0
"""Background threads that continue after a failure.

Each failure is logged. `metrics` records it by thread, so that `/ready` and alert rules can report it.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

_LOG = logging.getLogger(__name__)

FIRST_PAUSE = 0.1
"""Seconds before a failed body runs again; they double with each consecutive failure."""

_LONGEST_PAUSE = 30.0

_HEALTHY_SECONDS = 60.0
"""A body that runs for so long resets the pause."""

failure_listeners: list[Callable[[str], object]] = []
"""Called with the name of a thread for each failure."""


def start_helper_thread(name: str, body: Callable[[], object]) -> threading.Thread:
    """Run a body in a daemon thread until it returns; run it again after an exception.

    Raises:
        RuntimeError: if no thread can be started.
    """
    thread = threading.Thread(target=_run_until_done, args=(name, body), name=name, daemon=True)
    thread.start()
    return thread


def _run_until_done(name: str, body: Callable[[], object]) -> None:
    pause = FIRST_PAUSE
    while True:
        begin = time.monotonic()
        if run_guarded(name, body):
            return
        if time.monotonic() - begin >= _HEALTHY_SECONDS:
            pause = FIRST_PAUSE
        # An exception here would end the thread silently.
        run_guarded(name, partial(time.sleep, pause))
        pause = min(2 * pause, _LONGEST_PAUSE)


def run_guarded(name: str, body: Callable[[], object]) -> bool:
    """Run a body; log and count an exception, and return whether there was none."""
    try:
        body()
    except BaseException:  # noqa: BLE001 - SystemExit would end a thread silently, too
        note_failure(name)
        with suppress(Exception):
            _LOG.exception("The thread %r failed; it continues", name)
        return False
    return True


def note_failure(name: str) -> None:
    """Report a failure of a thread to the listeners."""
    for listener in failure_listeners:
        with suppress(Exception):
            listener(name)
