# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it."""

import logging
import time
from collections.abc import Sequence
from logging.handlers import QueueHandler, QueueListener
from multiprocessing.util import Finalize
from queue import Empty, SimpleQueue
from typing import Any

from oslo_log import log

from treeclaim.config import PROJECT, Configuration

_REQUESTS = "treeclaim.requests"
"""The logger that has one line for each request, see `api.layers`."""

_GATHER = 0.1
"""Seconds in which lines gather before they are written."""


def set_up(configuration: Configuration) -> None:
    """Start logging as the operator's options say."""
    log.setup(configuration.options, PROJECT)
    _write_requests_behind()
    if configuration.options.log_options:
        configuration.options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)


def _write_requests_behind() -> None:
    """Let a thread format and write the lines of requests, so that no client waits for them.

    That took a fifth of the time of a small answer. All other messages are written at once.
    """
    lines: SimpleQueue[Any] = SimpleQueue()
    listener = _Batches(lines, logging.getLogger().handlers)
    listener.start()
    requests = logging.getLogger(_REQUESTS)
    requests.handlers = [_AsItIs(lines)]
    requests.propagate = False

    def write_the_rest() -> None:
        """What is still to come, from requests that are being answered, is written at once."""
        requests.propagate = True
        requests.handlers = []
        listener.stop()

    # Unlike atexit, this is done at the end of a process that a server made by multiprocessing too.
    Finalize(None, write_the_rest, exitpriority=0)


class _AsItIs(QueueHandler):
    """Hands records over without formatting them; what they hold does not change any more."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record


class _Batches(QueueListener):
    """Writes many lines at a time: a thread that woke up for each would be in the way of all."""

    def __init__(self, lines: SimpleQueue[Any], handlers: Sequence[logging.Handler]) -> None:
        super().__init__(lines, *handlers, respect_handler_level=True)
        self._lines = lines

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Say who called, in the way oslo.log has it."""
        caller = record.__dict__.pop("caller", None)
        if caller is not None:
            record.context = caller.context()
        return record

    def dequeue(self, block: bool) -> Any:  # noqa: FBT001 - the base class has it so
        try:
            return self._lines.get_nowait()
        except Empty:
            first = self._lines.get(block)
            time.sleep(_GATHER)
            return first
