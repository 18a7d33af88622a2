# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it."""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from queue import SimpleQueue
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_log.formatters import JSONFormatter

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger that has one line for each request, see `api.layers`."""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, ends of lines and paragraphs of Unicode, what changes the direction of
writing, and halves of pairs, which no file can hold."""

_GATHER = 0.1
"""Seconds in which lines gather before they are written."""

_MOST_LINES = 1_000
"""Lines that wait, and that are written at once. With the longest targets they take 64 MB."""

_LONGEST_END = 5.0
"""Seconds for which a process that ends waits until its lines are written."""

_LOG = logging.getLogger(__name__)


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
        if isinstance(record, _Lines):
            return record.text
        cleaned = copy(record)
        cleaned.msg, cleaned.args = one_line(record.getMessage()), None
        context = getattr(record, "context", None)
        if isinstance(context, dict):
            cleaned.context = {
                name: one_line(value) if isinstance(value, str) else value
                for name, value in context.items()
            }
        return one_line(self._inner.format(cleaned), keep="\n")


@dataclass(slots=True)
class RequestLine:
    """The line of a request, noted while the client waits; it is made into a record later.

    Attributes:
        message, arguments: As for `Logger.info`.
        context: Returns the caller as oslo.log's formatters want it.
        extra: More for formats with named members.
        created, thread: When, and in which thread.
    """

    message: str
    arguments: tuple[object, ...]
    context: Callable[[], dict[str, Any]]
    extra: dict[str, Any]
    created: float = field(default_factory=time.time)
    thread: threading.Thread = field(default_factory=threading.current_thread)

    def record(self) -> logging.LogRecord:
        """Return the record that the logger would have made."""
        more = {"context": self.context(), "extra": self.extra}
        record = REQUESTS.makeRecord(
            REQUESTS.name,
            logging.INFO,
            __file__,
            0,
            self.message,
            self.arguments,
            None,
            extra=more,
        )
        later = record.created - self.created
        record.created = self.created
        record.msecs = self.created % 1 * 1000
        record.relativeCreated -= later * 1000
        record.thread, record.threadName = self.thread.ident, self.thread.name
        return record


_behind: SimpleQueue[RequestLine | None] | None = None
"""Lines that a thread writes; None where they are written at once."""


def tell_request(line: RequestLine) -> None:
    """Log the line of a request; at once where too many wait, so that clients cannot outrun a log."""
    behind = _behind
    if behind is not None and behind.qsize() < _MOST_LINES:
        behind.put(line)
    else:
        REQUESTS.handle(line.record())


def write_requests_behind() -> None:
    """Let a thread format and write request lines, so that no client waits for them.

    That took a fifth of the time of a small answer. All other messages are written at once.
    """
    global _behind  # noqa: PLW0603 - loggers are the process's too
    lines: SimpleQueue[RequestLine | None] = SimpleQueue()
    writer = threading.Thread(target=_write, args=(lines,), name="request-lines", daemon=True)
    writer.start()
    _behind = lines

    def write_the_rest() -> None:
        """Write the remaining lines, and those of requests under way at once.

        Not for ever: a server may end the process in a handler of a signal, and the thread that it
        interrupts may hold the lock of the log.
        """
        global _behind  # noqa: PLW0603 - see above
        _behind = None
        lines.put(None)
        writer.join(_LONGEST_END)

    # Unlike atexit, this is done at the end of a process that a server made by multiprocessing too.
    Finalize(None, write_the_rest, exitpriority=0)


class _Lines(logging.LogRecord):
    """Several formatted lines."""

    def __init__(self, text: str) -> None:
        super().__init__(REQUESTS.name, logging.INFO, __file__, 0, "", None, None)
        self.text = text


def _write(lines: SimpleQueue[RequestLine | None]) -> None:
    """Write lines until None comes, many at a time: each write lets other threads in."""
    is_over = False
    while not is_over:
        some = [lines.get()]
        if some[0] is not None:
            time.sleep(_GATHER)
        while not lines.empty() and len(some) < _MOST_LINES:
            some.append(lines.get())
        is_over = None in some
        try:
            _write_records([line.record() for line in some if line is not None])
        except Exception:  # noqa: BLE001 - the next lines are written
            _LOG.exception("Lines of requests could not be written")


def _write_records(records: Sequence[logging.LogRecord]) -> None:
    """Give records to the handlers of all messages: in one write to those that write to a file."""
    passed = [record for record in records if REQUESTS.filter(record)]
    for handler in logging.getLogger().handlers:
        if handler.level > logging.INFO or not passed:
            continue
        if isinstance(handler, logging.StreamHandler) and isinstance(handler.formatter, _OneLine):
            admitted = [record for record in passed if handler.filter(record)]
            if admitted:
                handler.handle(_Lines(handler.terminator.join(map(handler.format, admitted))))
        else:
            for record in passed:
                handler.handle(record)
