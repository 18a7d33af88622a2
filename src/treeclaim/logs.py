# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it."""

import logging
import os
import select
import socket
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslo_log.formatters import JSONFormatter

from treeclaim.model.texts import one_line

LOG_FILE = "placement-api.log"
"""The file in `log_dir`, where `log_file` names none."""

_PATIENCE = 1.0
"""Seconds for which a line waits for room in a pipe, or in the socket of a journal, that nobody reads."""


def set_up(options: cfg.ConfigOpts, program: str) -> None:
    """Start logging as the operator's options say, each line when it is told.

    With `log_dir` and no `log_file` all processes write to one file of the name that the Placement
    service's packages use; oslo.log would name it by the script that a process was begun with.

    No thread is started, so a process may fork after this; see `request_lines.write_behind`.
    """
    options.set_default("log_file", LOG_FILE if options.log_dir else None)
    log.setup(options, program)
    for handler in logging.getLogger().handlers:
        is_file = isinstance(handler, logging.FileHandler)
        if isinstance(handler, logging.StreamHandler) and not is_file:
            with suppress(OSError, ValueError):
                handler.setStream(PatientStream(handler.stream.fileno()))
        if handler.formatter is not None and not isinstance(handler.formatter, JSONFormatter):
            handler.setFormatter(OneLine(handler.formatter))


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


class OneLine(logging.Formatter):
    """Escapes what would let a client forge a line (or hide one) in a log for people.

    Each message becomes one line, and so does what is known of the caller. The lines of a traceback
    stay lines: oslo.log begins each of them as it begins every line.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without changing it: other handlers format it too."""
        if isinstance(record, Lines):
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


class Lines(logging.LogRecord):
    """Several formatted lines, for a handler that writes them at once."""

    def __init__(self, logger: str, text: str) -> None:
        super().__init__(logger, logging.INFO, __file__, 0, "", None, None)
        self.text = text


class PatientStream:
    """Writes to a pipe, a socket or a terminal that perhaps nobody reads, and waits a second at most.

    A message that finds no room is lost, and a later one says how many were. Nobody waits again until there is
    room: neither the loop that all connections share nor a request may stand still for a log.
    """

    def __init__(self, descriptor: int) -> None:
        """Write where a descriptor leads.

        Raises:
            OSError: if it is not open.
        """
        self._send, self._descriptor, self.close = _without_wait(descriptor)
        self._rest = b""
        self._lost = 0
        self._is_full = False

    def write(self, text: str) -> None:
        """Write a message, or what there is room for and the rest before the next one."""
        patience = 0.0 if self._is_full else _PATIENCE
        self._rest = self._left_of(self._rest, patience)
        told = f"{self._lost} messages were lost: nobody read this log\n" if self._lost else ""
        data = f"{told}{text}".encode(errors="backslashreplace")
        left = data if self._rest else self._left_of(data, patience)
        if len(left) == len(data):
            self._lost += 1
        else:
            self._rest, self._lost = left, 0
        self._is_full = bool(left)

    def flush(self) -> None:
        """Do nothing: what is kept back had no room."""

    def _left_of(self, data: bytes, patience: float) -> bytes:
        """Write bytes; return those for which there was no room within some seconds."""
        deadline = time.monotonic() + patience
        while data:
            try:
                data = data[self._send(data) :]
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0 or not _has_room(self._descriptor, left):
                    break
        return data


def _without_wait(descriptor: int) -> tuple[Callable[[bytes], int], int, Callable[[], None]]:
    """Return what writes as much as there is room for, the descriptor that tells of room, and what closes it.

    A pipe is opened once more: whether a write to it may wait is a property that it shares with everybody who
    has inherited it.
    """
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISSOCK(kind):
        connection = socket.socket(fileno=os.dup(descriptor))
        send = partial(_sent, connection)
        return send, connection.fileno(), connection.close
    if stat.S_ISREG(kind):
        # Its end is one for all who write there, and there is always room, or an error.
        opened = os.dup(descriptor)
        return partial(os.write, opened), opened, partial(os.close, opened)
    write: Callable[[int, bytes], int] = os.write
    try:
        opened = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        # It belongs to another user, or this is another system.
        opened, write = os.dup(descriptor), _piece_written
    return partial(write, opened), opened, partial(os.close, opened)


def _sent(connection: socket.socket, data: bytes) -> int:
    return connection.send(data, socket.MSG_DONTWAIT)


def _piece_written(descriptor: int, data: bytes) -> int:
    """Write as much as a pipe that tells of room has room for (POSIX, `PIPE_BUF`)."""
    if not _has_room(descriptor, 0.0):
        raise BlockingIOError
    return os.write(descriptor, data[: select.PIPE_BUF])


def _has_room(descriptor: int, seconds: float) -> bool:
    """Wait until there is room to write, for some seconds at most; return whether there is."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(seconds * 1000))
