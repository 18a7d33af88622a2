# SPDX-License-Identifier: Apache-2.0
"""The records of requests, and lines that no client can forge."""

import logging
import os
import threading
import time
from collections.abc import Mapping
from copy import copy
from typing import Any

from oslo_log.formatters import JSONFormatter

from treeclaim.model.texts import one_line

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger that has one line for each request, see `api.middleware.layers`."""


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
            caller: What formatters show of the caller.
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

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without changing it: other handlers format it too."""
        if isinstance(text := getattr(record, "formatted", None), str):
            return text
        if isinstance(record, RequestLogRecord):
            record = record.whole()
        if isinstance(self._inner, JSONFormatter):
            return self._inner.format(record)
        return one_line(self._inner.format(_clean(record)), keep="\n")


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
