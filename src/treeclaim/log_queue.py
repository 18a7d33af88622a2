# SPDX-License-Identifier: Apache-2.0
"""A queue of log records, bounded in bytes, and the thread that formats and writes them.

Lines are lost if a handler raises or the queue is full. The next written line reports their number.
"""

import logging
import os
import select
import sys
import threading
import time
from contextlib import suppress
from copy import copy
from multiprocessing.util import Finalize
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from treeclaim.helper_threads import note_failure, start_helper_thread
from treeclaim.log_lines import OneLineFormatter, RequestRecord, count_characters

QUEUE_BYTES = 8 << 20
"""Most bytes of queued records; further records are dropped."""

_RECORD_BYTES = 2_560
"""Bytes of a record without its text."""

_GATHER_SECONDS = 0.1
"""Seconds for which lines of requests are collected for one write, because each write lets other threads run first."""

_BATCH = 1_000

_FULL_SECONDS = 1.0
"""Seconds for which a line waits for room in a full pipe."""

_END_SECONDS = 5.0
"""Seconds for which an exiting process waits for the log thread."""

_REPORT_SECONDS = 60.0


class RawStream:
    """Writes to a pipe, socket or terminal that may be full; waits for at most a second.

    After a timeout, writes fail at once until the stream has room. A write holds no lock, so that the interpreter
    can exit during it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_full = self._is_cut = False

    def write(self, text: str) -> None:
        """Write a text.

        Raises:
            TimeoutError: if the stream has no room for the whole text.
            OSError: if it cannot be written.
        """
        data = (b"\n" if self._is_cut else b"") + text.encode(errors="backslashreplace")
        while data:
            seconds = 0.0 if self._is_full else _FULL_SECONDS
            self._is_full = not self._poll.poll(seconds * 1000)
            if self._is_full:
                raise TimeoutError("the stream is full")
            # By POSIX, a pipe that polls as writable has room for PIPE_BUF bytes.
            data = data[os.write(self._descriptor, data[: select.PIPE_BUF]) :]
            self._is_cut = bool(data)

    def flush(self) -> None:
        """Do nothing: writes are not buffered."""


class QueuedHandler(logging.Handler):
    """Queues the records for a configured handler, or writes them at once if there is no log thread.

    Attributes:
        handler: The configured handler.
        lost: Number of records lost since the last written record.
    """

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__(handler.level)
        self.handler = handler
        self.lost = 0
        handler.handleError = _raise_again  # type: ignore[method-assign, assignment]
        handler.setFormatter(OneLineFormatter(handler.formatter or logging.Formatter()))
        if isinstance(handler, logging.StreamHandler) and not isinstance(
            handler, logging.FileHandler
        ):
            # Some streams have no descriptor.
            with suppress(Exception):
                handler.setStream(RawStream(handler.stream.fileno()))

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record, or write it; never raises."""
        queue = _queue
        try:
            prepared_record = self._prepare(record)
            if queue is not None:
                queue.put(self, prepared_record)
            else:
                self.write([prepared_record])
                self.close_file()
        except Exception as error:  # noqa: BLE001 - no log may fail a request
            self.drop()
            _report_loss(self.handler, error)

    def _prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return a record that refers only to its text, unless it is the small record of a request."""
        if isinstance(record, RequestRecord):
            return record
        prepared_record = copy(record)
        prepared_record.formatted = self.handler.format(record)
        prepared_record.args = prepared_record.exc_info = None
        return prepared_record

    def write(self, batch: list[logging.LogRecord]) -> None:
        """Write records; never raises. Only one thread may use a handler at a time."""
        try:
            self._write(batch)
        except Exception as error:  # noqa: BLE001 - no log may fail a request
            self.drop(len(batch))
            self.close_file()
            _report_loss(self.handler, error)
        else:
            self.lost = 0

    def _write(self, batch: list[logging.LogRecord]) -> None:
        handler = self.handler
        admitted_records = [record for record in batch if handler.filter(record)]
        if self.lost:
            notice = f"{self.lost} log lines were lost"
            admitted_records.insert(
                0, logging.LogRecord(__name__, logging.WARNING, __file__, 0, notice, None, None)
            )
        if isinstance(handler, logging.StreamHandler) and len(admitted_records) > 1:
            joined_record = logging.LogRecord(__name__, logging.INFO, __file__, 0, "", None, None)
            joined_record.formatted = handler.terminator.join(
                map(handler.format, admitted_records)
            )
            admitted_records = [joined_record]
        for record in admitted_records:
            handler.emit(record)

    def drop(self, lines: int = 1) -> None:
        """Count lost lines."""
        self.lost += lines
        note_failure("log")

    def close_file(self) -> None:
        """Close the file; the next line opens it again."""
        if isinstance(self.handler, logging.FileHandler):
            stream: Any = self.handler.stream
            self.handler.stream = None
            if stream is not None:
                # On a full disk, it raises after closing the descriptor.
                with suppress(Exception):
                    stream.close()


def _raise_again(_record: logging.LogRecord) -> None:
    """Raise the present error, which a handler would otherwise print on standard error for each line."""
    error = sys.exc_info()[1]
    if error is not None:
        raise error


_reported_at = -_REPORT_SECONDS


def _report_loss(handler: logging.Handler, error: Exception) -> None:
    """Report lost lines on standard error, once a minute."""
    global _reported_at  # noqa: PLW0603 - there is one standard error
    if time.monotonic() - _reported_at < _REPORT_SECONDS:
        return
    _reported_at = time.monotonic()
    name = getattr(handler, "baseFilename", type(handler).__name__)
    with suppress(Exception):
        RawStream(2).write(f"treeclaim {os.getpid()}: log lines are lost: {name}: {error}\n")


class _QueuedRecord(NamedTuple):
    """A record that waits for the log thread."""

    handler: QueuedHandler
    record: logging.LogRecord
    size: int


class LogQueue:
    """The records that wait for the log thread."""

    def __init__(self) -> None:
        self._records: SimpleQueue[_QueuedRecord | None] = SimpleQueue()
        self._bytes = 0
        # A signal handler may log while this thread holds the lock.
        self._guard = threading.RLock()

    def put(self, handler: QueuedHandler, record: logging.LogRecord) -> None:
        """Queue a record, or drop and count it."""
        size = _RECORD_BYTES + count_characters(record)
        with self._guard:
            has_room = self._bytes + size <= QUEUE_BYTES
            if has_room:
                self._bytes += size
        if has_room:
            self._records.put(_QueuedRecord(handler, record, size))
        else:
            handler.drop()

    def close(self) -> None:
        """End the log thread after the queued records."""
        self._records.put(None)

    def run(self) -> None:
        """Write records until the queue is closed; the body of the log thread."""
        while True:
            batch = [self._records.get()]
            if batch[0] is not None and isinstance(batch[0].record, RequestRecord):
                time.sleep(_GATHER_SECONDS)
            with suppress(Empty):
                while len(batch) < _BATCH:
                    batch.append(self._records.get_nowait())
            self._write([queued_record for queued_record in batch if queued_record is not None])
            if None in batch:
                return

    def _write(self, batch: list[_QueuedRecord]) -> None:
        records_by_handler: dict[QueuedHandler, list[logging.LogRecord]] = {}
        for queued_record in batch:
            records_by_handler.setdefault(queued_record.handler, []).append(queued_record.record)
        try:
            for handler, records in records_by_handler.items():
                handler.write(records)
        finally:
            with self._guard:
                self._bytes -= sum(queued_record.size for queued_record in batch)


_queue: LogQueue | None = None
"""The queue of this process; None without a log thread."""

handlers: list[QueuedHandler] = []
"""The handlers of the last configuration."""


def start_log_thread() -> None:
    """Queue records from now on; a process calls this after its last fork."""
    global _queue  # noqa: PLW0603 - loggers are global, too
    queue = LogQueue()
    for handler in handlers:
        # A broken handler may not have released its lock.
        handler.handler.createLock()
    thread = start_helper_thread("log", queue.run)
    _queue = queue

    def write_remaining() -> None:
        """Wait some seconds for the queued records; write later records at once."""
        global _queue  # noqa: PLW0603 - see above
        queue.close()
        thread.join(_END_SECONDS)
        if not thread.is_alive():
            _queue = None

    # Unlike atexit, Finalize also runs in a process that a server starts by multiprocessing.
    Finalize(None, write_remaining, exitpriority=0)
