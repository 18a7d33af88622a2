# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it."""

import logging
import re
import time
from collections.abc import Mapping, Sequence
from copy import copy
from logging.handlers import QueueHandler, QueueListener
from multiprocessing.util import Finalize
from queue import Empty, SimpleQueue
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_log.formatters import JSONFormatter

_REQUESTS = "treeclaim.requests"
"""The logger that has one line for each request, see `api.layers`."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines and paragraphs of Unicode, what changes the direction of
writing, and halves of pairs, which no file can hold."""

_GATHER = 0.1
"""Seconds in which lines gather before they are written."""


def set_up(options: cfg.ConfigOpts, program: str) -> None:
    """Start logging as the operator's options say, each line when it is told.

    No thread is started, so a process may fork after this; see `write_requests_behind`.
    """
    log.setup(options, program)
    for handler in logging.getLogger().handlers:
        if handler.formatter is not None and not isinstance(handler.formatter, JSONFormatter):
            handler.setFormatter(_OneLine(handler.formatter))


def tell_options(options: cfg.ConfigOpts) -> None:
    """Log the values of all options, where an option asks for that."""
    if options.log_options:
        options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)


def options_of(options: cfg.ConfigOpts) -> dict[str, Any]:
    """Return the values of all options of logging, for a process that reads no configuration."""
    known = cfg.ConfigOpts()
    built_in = set(known)
    log.register_options(known)
    return {name: options[name] for name in known if name in options and name not in built_in}


def set_up_by(values: Mapping[str, Any], program: str) -> None:
    """Start logging as another process was told to; see `options_of`."""
    options = cfg.ConfigOpts()
    log.register_options(options)
    options([], default_config_files=[], default_config_dirs=[])
    for name, value in values.items():
        options.set_override(name, value)
    set_up(options, program)


def one_line(text: str, *, keep: str = "") -> str:
    """Return a text without line breaks, cursor movements or changes of writing direction.

    Args:
        text: With anything that a client may have sent in it.
        keep: Characters that stay.
    """
    if text.isprintable():
        # As nearly all texts, and found out sooner: what is printable has none of these.
        return text
    return _CONTROL.sub(
        lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text
    )


class _OneLine(logging.Formatter):
    """Escapes what would let a client forge a line (or hide one) in a log for people.

    Each message becomes one line, and so does what is known of the caller. The lines of a traceback
    stay lines: oslo.log begins each of them as it begins every line.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without changing it: other handlers format it too."""
        cleaned = copy(record)
        cleaned.msg, cleaned.args = one_line(record.getMessage()), None
        context = getattr(record, "context", None)
        if isinstance(context, dict):
            cleaned.context = {
                name: one_line(value) if isinstance(value, str) else value
                for name, value in context.items()
            }
        return one_line(self._inner.format(cleaned), keep="\n")


def write_requests_behind() -> None:
    """Let a thread format and write request lines, so that no client waits for them.

    That took a fifth of the time of a small answer. All other messages are written at once.
    """
    lines: SimpleQueue[Any] = SimpleQueue()
    listener = _Batches(lines, logging.getLogger().handlers)
    listener.start()
    requests = logging.getLogger(_REQUESTS)
    requests.handlers = [_AsItIs(lines)]
    requests.propagate = False

    def write_the_rest() -> None:
        """Write the remaining records, of requests under way, at once."""
        requests.propagate = True
        requests.handlers = []
        listener.stop()

    # Unlike atexit, this is done at the end of a process that a server made by multiprocessing too.
    Finalize(None, write_the_rest, exitpriority=0)


class _AsItIs(QueueHandler):
    """Passes records on unformatted; their contents no longer change."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record


class _Batches(QueueListener):
    """Writes many lines at a time; waking a thread for each line would slow requests down."""

    def __init__(self, lines: SimpleQueue[Any], handlers: Sequence[logging.Handler]) -> None:
        super().__init__(lines, *handlers, respect_handler_level=True)
        self._lines = lines

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Add the caller, as oslo.log does."""
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
