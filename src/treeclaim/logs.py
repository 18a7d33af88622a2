# SPDX-License-Identifier: Apache-2.0
"""Logging as oslo.log configures it, behind a queue: no log can delay or fail a request.

Each handler that the operator configured is replaced by one that puts records into the queue of the
process. A thread formats and writes them. A handler that raises, or a queue that is full, costs lines;
they are counted, and the next line that can be written says how many.
"""

import logging
import logging.handlers
import os
import select
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from importlib.util import find_spec
from multiprocessing.util import Finalize
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from oslo_config import cfg
from oslo_log import log
from oslo_log.formatters import ContextFormatter, JSONFormatter

from treeclaim.helper_threads import note_failure, run_guarded, start_helper_thread
from treeclaim.model.texts import one_line

LOG_FILE = "placement-api.log"
"""The file in `log_dir`, where `log_file` names none."""

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger that has one line for each request, see `api.middleware.layers`."""

_PLACEMENT_NAMES = {"treeclaim": "placement", REQUESTS.name: "placement.requestlog"}
"""Our loggers, and the loggers of the Placement service that operators configured in their place."""

QUEUE_BYTES = 8 << 20
"""Bytes of records that wait for the log thread; further ones are dropped."""

_RECORD_BYTES = 2_560
"""Bytes of a record besides its text."""

_GATHER_SECONDS = 0.1
"""Seconds in which lines of requests gather: each write lets other threads run first."""

_BATCH = 1_000

_IDLE_SECONDS = 30.0
"""Seconds after which an idle process closes a file that was renamed or removed."""

_PATIENCE = 1.0
"""Seconds for which a line waits for room in a pipe that nobody reads."""

_END_SECONDS = 5.0
"""Seconds for which a process that ends waits until its lines are written."""

_COMPLAINT_SECONDS = 60.0

_MAX_FORMATTED_CALLERS = 256

_FILE_CLOCK_STEP_NS = 20_000_000
"""The kernel stamps files with a clock that advances every few milliseconds."""


class RequestLogRecord(logging.LogRecord):
    """The record of a request; the log thread does all work that can wait."""

    def __init__(
        self,
        message: str,
        arguments: tuple[object, ...],
        caller: Mapping[str, Any],
        request_ids: tuple[str, str | None],
        extra: Mapping[str, Any],
    ) -> None:
        """Copy what all requests have in common; `LogRecord` would compute it for each.

        Args:
            message: The message, with placeholders.
            arguments: The arguments of the message.
            caller: What formatters show of the caller; the same object for the same caller, if possible.
            request_ids: The id of the request, and the global one.
            extra: Members for structured formats.
        """
        self.__dict__.update(_COMMON)
        now, thread = time.time(), threading.current_thread()
        self.msg, self.args = message, arguments
        self.created, self.msecs = now, float(int(now % 1 * 1000))
        self.relativeCreated += (now - _COMMON["created"]) * 1000
        self.process, self.thread, self.threadName = os.getpid(), thread.ident, thread.name
        self.caller, self.request_ids, self.extra = caller, request_ids, extra

    @property
    def context(self) -> dict[str, Any]:
        """Return what oslo.log's formatters show of the request."""
        request_id, global_request_id = self.request_ids
        ids = {"request_id": request_id, "global_request_id": global_request_id}
        return {**self.caller, **ids}

    def whole(self) -> logging.LogRecord:
        """Return an ordinary record with the context where formatters and handlers look for it."""
        record = logging.makeLogRecord(self.__dict__)
        record.context = self.context
        return record


_COMMON = REQUESTS.makeRecord(REQUESTS.name, logging.INFO, __file__, 0, "", (), None).__dict__


class OneLine(logging.Formatter):
    """Escapes what would let a client forge a line, or hide one.

    Each message becomes one line. The lines of a traceback stay lines: oslo.log begins each of them as it
    begins every line. JSON escapes them itself.
    """

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner
        self._second = -1
        self._formatted: dict[int, tuple[str, dict[str, Any]]] = {}

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without changing it: other handlers format it too."""
        if isinstance(text := getattr(record, "formatted", None), str):
            return text
        if isinstance(record, RequestLogRecord):
            if type(self._inner) is ContextFormatter:
                return self._format_request(record, self._inner)
            record = record.whole()
        if isinstance(self._inner, JSONFormatter):
            return self._inner.format(record)
        return self._format_clean(_clean(record))

    def _format_clean(self, record: logging.LogRecord) -> str:
        return one_line(self._inner.format(record), keep="\n")

    def _format_request(self, record: RequestLogRecord, inner: ContextFormatter) -> str:
        """Format by what the formatter made of the first line of the caller in this second.

        That takes a fifth of the time. All members that differ between such lines are in the record.
        """
        second = int(record.created)
        if second != self._second or len(self._formatted) >= _MAX_FORMATTED_CALLERS:
            self._second, self._formatted = second, {}
        known = self._formatted.get(id(record.caller))
        request_id, global_request_id = record.request_ids
        if known is None or not request_id:
            first = _clean(record.whole())
            text = self._format_clean(first)
            format_string = str(inner.conf.logging_context_format_string)
            if request_id and "isotime" not in format_string:
                # The caller is in it too, so that no other caller has the same id.
                members = {**first.__dict__, "caller": record.caller}
                self._formatted[id(record.caller)] = (format_string, members)
            return text
        format_string, members = known
        differing = {
            "message": one_line(record.getMessage()),
            "request_id": one_line(request_id),
            "global_request_id": global_request_id and one_line(global_request_id),
        }
        return one_line(format_string % {**members, **record.__dict__, **differing}, keep="\n")


def _clean(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy whose message and context are one line each."""
    cleaned = copy(record)
    cleaned.msg, cleaned.args = one_line(record.getMessage()), None
    context = getattr(record, "context", None)
    if isinstance(context, dict):
        cleaned.context = {
            name: one_line(value) if isinstance(value, str) else value
            for name, value in context.items()
        }
    return cleaned


class RawStream:
    """Writes to a pipe, a socket or a terminal that perhaps nobody reads, and waits a second at most.

    Nobody waits again until there is room. The interpreter can end during a write: no lock is held.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_full = self._is_cut = False

    def write(self, text: str) -> None:
        """Write a text.

        Raises:
            TimeoutError: if there was no room for all of it.
            OSError: if it cannot be written.
        """
        data = (b"\n" if self._is_cut else b"") + text.encode(errors="backslashreplace")
        while data:
            patience = 0.0 if self._is_full else _PATIENCE
            self._is_full = not self._poll.poll(patience * 1000)
            if self._is_full:
                raise TimeoutError("nobody reads it")
            # POSIX: a pipe that polls as writable has room for so many.
            data = data[os.write(self._descriptor, data[: select.PIPE_BUF]) :]
            self._is_cut = bool(data)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""


class LogTarget:
    """A handler that the operator configured.

    Attributes:
        handler: The handler.
        lost: Records that were not written since the last one that was.
    """

    def __init__(self, handler: logging.Handler) -> None:
        self.handler = handler
        self.lost = 0
        handler.handleError = _raise_again  # type: ignore[method-assign, assignment]
        handler.setFormatter(OneLine(handler.formatter or logging.Formatter()))
        if isinstance(handler, logging.StreamHandler) and not isinstance(
            handler, logging.FileHandler
        ):
            # Some streams have no descriptor, and some handlers are broken.
            with suppress(Exception):
                handler.setStream(RawStream(handler.stream.fileno()))

    def write(self, records: Iterable[logging.LogRecord]) -> None:
        """Write records; one handler is used by one thread at a time. Never raises."""
        batch = list(records)
        try:
            self._emit(batch)
        except Exception as error:  # noqa: BLE001 - no log may fail a request, whatever the handler raises
            self.drop(len(batch))
            self.close_file()
            _complain(self.handler, error)
        else:
            self.lost = 0

    def _emit(self, batch: list[logging.LogRecord]) -> None:
        handler = self.handler
        admitted = [record for record in batch if handler.filter(record)]
        if self.lost:
            notice = f"{self.lost} log lines were lost"
            admitted.insert(
                0, logging.LogRecord(__name__, logging.WARNING, __file__, 0, notice, None, None)
            )
        if isinstance(handler, logging.StreamHandler) and len(admitted) > 1:
            joined = logging.LogRecord(__name__, logging.INFO, __file__, 0, "", None, None)
            joined.formatted = handler.terminator.join(map(handler.format, admitted))
            admitted = [joined]
        for record in admitted:
            handler.emit(record.whole() if isinstance(record, RequestLogRecord) else record)

    def drop(self, lines: int = 1) -> None:
        """Count lost lines."""
        self.lost += lines
        note_failure("log")

    def close_file(self) -> None:
        """Close a file; the next line opens it again."""
        if isinstance(self.handler, logging.FileHandler):
            stream: Any = self.handler.stream
            self.handler.stream = None
            if stream is not None:
                # The descriptor is closed even if the disk is full.
                with suppress(Exception):
                    stream.close()

    def close_old_file(self) -> None:
        """Close a file that was renamed or removed, so that its disk has room again."""
        handler = self.handler
        if isinstance(handler, logging.FileHandler) and handler.stream is not None:
            opened = os.fstat(handler.stream.fileno())
            try:
                is_old = not os.path.samestat(opened, os.stat(handler.baseFilename))  # noqa: PTH116
            except OSError:
                is_old = True
            if is_old:
                self.close_file()


def _raise_again(_record: logging.LogRecord) -> None:
    """Let `LogTarget.write` know what a handler would print on standard error for each line."""
    error = sys.exc_info()[1]
    if error is not None:
        raise error


_last_complaint = -_COMPLAINT_SECONDS


def _complain(handler: logging.Handler, error: Exception) -> None:
    """Say on standard error that lines are lost, once a minute."""
    global _last_complaint  # noqa: PLW0603 - standard error is the process's too
    if time.monotonic() - _last_complaint < _COMPLAINT_SECONDS:
        return
    _last_complaint = time.monotonic()
    where = getattr(handler, "baseFilename", type(handler).__name__)
    with suppress(Exception):
        RawStream(2).write(f"treeclaim {os.getpid()}: log lines are lost: {where}: {error}\n")


class _Waiting(NamedTuple):
    """A record that waits for the log thread."""

    target: LogTarget
    record: logging.LogRecord
    size: int


class LogQueue:
    """Records that wait for the log thread, bounded in bytes."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._bytes = 0
        # A handler of a signal may log while this thread holds it.
        self._guard = threading.RLock()

    def put(self, target: LogTarget, record: logging.LogRecord) -> None:
        """Queue a record, or drop and count it."""
        size = _RECORD_BYTES + _text_length(record)
        with self._guard:
            has_room = self._bytes + size <= QUEUE_BYTES
            if has_room:
                self._bytes += size
        if has_room:
            self._waiting.put(_Waiting(target, record, size))
        else:
            target.drop()

    def close(self) -> None:
        """Let the log thread end once it has written what waits now."""
        self._waiting.put(None)

    def run(self) -> None:
        """Write records until the queue is closed; the body of the log thread."""
        while True:
            try:
                batch = [self._waiting.get(timeout=_IDLE_SECONDS)]
            except Empty:
                for target in _targets:
                    run_guarded("log", target.close_old_file)
                continue
            if batch[0] is not None and isinstance(batch[0].record, RequestLogRecord):
                time.sleep(_GATHER_SECONDS)
            with suppress(Empty):
                while len(batch) < _BATCH:
                    batch.append(self._waiting.get_nowait())
            self._write([waiting for waiting in batch if waiting is not None])
            if None in batch:
                return

    def _write(self, batch: list[_Waiting]) -> None:
        records: dict[LogTarget, list[logging.LogRecord]] = {}
        for waiting in batch:
            records.setdefault(waiting.target, []).append(waiting.record)
        try:
            for target, lines in records.items():
                target.write(lines)
        finally:
            with self._guard:
                self._bytes -= sum(waiting.size for waiting in batch)


def _text_length(record: logging.LogRecord) -> int:
    if isinstance(record, RequestLogRecord) and isinstance(record.args, tuple):
        return sum(len(value) for value in record.args if isinstance(value, str))
    return len(getattr(record, "formatted", ""))


class DroppingQueueHandler(logging.handlers.QueueHandler):
    """Hands records to the log thread; without one, for instance before a fork, it writes them itself."""

    def __init__(self, target: LogTarget) -> None:
        super().__init__(SimpleQueue())
        self.target = target
        self.setLevel(target.handler.level)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return a record that keeps no object alive but its text; a request's is small as it is."""
        if isinstance(record, RequestLogRecord):
            return record
        prepared = copy(record)
        prepared.formatted = self.target.handler.format(record)
        prepared.args = prepared.exc_info = None
        return prepared

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a record, or write it; never raises."""
        queue = _queue
        try:
            prepared = self.prepare(record)
            if queue is not None:
                queue.put(self.target, prepared)
            else:
                self.target.write([prepared])
                self.target.close_file()
        except Exception as error:  # noqa: BLE001 - no log may fail a request
            self.target.drop()
            _complain(self.target.handler, error)


_queue: LogQueue | None = None
"""The queue of this process; None where nobody writes behind it."""

_targets: list[LogTarget] = []
"""The handlers that the operator configured last."""


class LoggingError(Exception):
    """Logging cannot be set up; the message is for operators."""


def check_logging(options: cfg.ConfigOpts, program: str) -> None:
    """Set up logging as a service would, undo it, and remove the files that this made.

    A file that belongs to the user who checks would keep the service from writing to it.

    Raises:
        LoggingError: if a service could not start with these options.
    """
    begin = time.time_ns() - _FILE_CLOCK_STEP_NS
    try:
        set_up_logging(options, program)
    finally:
        for logger in _all_loggers():
            for handler in [h for h in logger.handlers if isinstance(h, DroppingQueueHandler)]:
                logger.removeHandler(handler)
                handler.target.close_file()
                path = Path(getattr(handler.target.handler, "baseFilename", os.devnull))
                made = path.stat() if path.is_file() else None
                if made is not None and not made.st_size and made.st_ctime_ns >= begin:
                    path.unlink()


def set_up_logging(options: cfg.ConfigOpts, program: str) -> None:
    """Start logging as the operator's options say.

    With `log_dir` and no `log_file` all processes write to one file of the name that the Placement
    service's packages use; oslo.log would name it by the script that a process was begun with.

    No thread is started, so a process may fork after this; see `start_log_thread`.

    Raises:
        LoggingError: if that cannot be done; the message says why.
    """
    options.set_default("log_file", LOG_FILE if options.log_dir else None)
    if options.publish_errors and not options.log_config_append:
        raise LoggingError("[DEFAULT]/publish_errors is not supported: set it to false")
    if options.use_journal and not options.log_config_append and find_spec("systemd") is None:
        raise LoggingError(
            "[DEFAULT]/use_journal needs the Python package systemd-python, which is not installed: "
            "install it beside Treeclaim, or set use_journal to false"
        )
    try:
        log.setup(options, program)
    except (
        Exception
    ) as error:  # the library has an error of its own, and files and handlers have theirs
        raise LoggingError(f"logging cannot be set up: {error}") from error
    for name, placement_name in _PLACEMENT_NAMES.items():
        _follow_placement_logger(logging.getLogger(name), logging.getLogger(placement_name))
    queued: dict[logging.Handler, DroppingQueueHandler] = {}
    for logger in _all_loggers():
        for handler in list(logger.handlers):
            if isinstance(handler, DroppingQueueHandler):
                queued[handler] = handler
                continue
            if handler not in queued:
                queued[handler] = DroppingQueueHandler(LogTarget(handler))
            logger.removeHandler(handler)
            logger.addHandler(queued[handler])
    _targets[:] = [handler.target for handler in queued.values()]


def _follow_placement_logger(logger: logging.Logger, placement: logging.Logger) -> None:
    """Apply the level, handlers and propagation of a Placement logger, unless ours has its own."""
    if not logger.level:
        logger.setLevel(placement.level)
    if not logger.handlers:
        reached = _handlers_above(logger)
        logger.propagate = placement.propagate
        for handler in placement.handlers:
            if not logger.propagate or handler not in reached:
                logger.addHandler(handler)


def _handlers_above(logger: logging.Logger) -> list[logging.Handler]:
    """Return the handlers that a line reaches besides those of its own logger."""
    reached: list[logging.Handler] = []
    above = logger.parent
    while above is not None:
        reached += above.handlers
        above = above.parent if above.propagate else None
    return reached


def _all_loggers() -> list[logging.Logger]:
    root = logging.getLogger()
    known = list(root.manager.loggerDict.values())
    return [root, *(logger for logger in known if isinstance(logger, logging.Logger))]


def start_log_thread() -> None:
    """Write behind a queue from now on; a process calls this after its last fork."""
    global _queue  # noqa: PLW0603 - loggers are the process's too
    queue = LogQueue()
    thread = start_helper_thread("log", queue.run)
    _queue = queue

    def write_remaining() -> None:
        """Write what waits, but not for ever; what comes later is written at once."""
        global _queue  # noqa: PLW0603 - see above
        queue.close()
        thread.join(_END_SECONDS)
        if not thread.is_alive():
            _queue = None

    # Unlike atexit, this is done at the end of a process that a server made by multiprocessing too.
    Finalize(None, write_remaining, exitpriority=0)


def log_options(options: cfg.ConfigOpts) -> None:
    """Log the values of all options, where an option asks for that."""
    if options.log_options:
        options.log_opt_values(logging.getLogger(__name__), logging.DEBUG)


def logging_options(options: cfg.ConfigOpts) -> dict[str, Any]:
    """Return the values of all options of logging, for a process that reads no configuration."""
    known = cfg.ConfigOpts()
    built_in = set(known)
    log.register_options(known)
    return {name: options[name] for name in known if name in options and name not in built_in}


def set_up_logging_by(values: Mapping[str, Any], program: str) -> None:
    """Start logging by the values of another process; see `logging_options`."""
    options = cfg.ConfigOpts()
    log.register_options(options)
    options([], default_config_files=[], default_config_dirs=[])
    for name, value in values.items():
        options.set_override(name, value)
    set_up_logging(options, program)
