# SPDX-License-Identifier: Apache-2.0
"""The records of requests, and lines that no client can forge."""

import logging
import os
import threading
import time
from collections.abc import Mapping
from copy import copy
from typing import Any

from oslo_log.formatters import ContextFormatter, JSONFormatter

from treeclaim.model.texts import one_line

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger that has one line for each request, see `api.middleware.layers`."""

_MAX_FORMATTED_CALLERS = 256


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
        cached_format = self._formatted.get(id(record.caller))
        request_id, global_request_id = record.request_ids
        if cached_format is None or not request_id:
            first = _clean(record.whole())
            text = self._format_clean(first)
            format_string = str(inner.conf.logging_context_format_string)
            if request_id and "isotime" not in format_string:
                # The caller is in it too, so that no other caller has the same id.
                members = {**first.__dict__, "caller": record.caller}
                self._formatted[id(record.caller)] = (format_string, members)
            return text
        format_string, members = cached_format
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


def text_length(record: logging.LogRecord) -> int:
    """Return the characters of the texts that a record keeps in memory."""
    if isinstance(record, RequestLogRecord) and isinstance(record.args, tuple):
        return sum(len(value) for value in record.args if isinstance(value, str))
    return len(getattr(record, "formatted", ""))
