# SPDX-License-Identifier: Apache-2.0
"""Log records of requests, and a formatter that prevents clients from forging lines."""

import logging
import os
import threading
import time
from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from typing import Any

from oslo_log.formatters import ContextFormatter, JSONFormatter

from treeclaim.model.names import one_line

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger with one line for each request; see `api.middleware.layers`."""

_MAX_FORMATTED_CALLERS = 256


class RequestRecord(logging.LogRecord):
    """The record of a request, which the log thread formats.

    It skips the constructor of `LogRecord`, which parses a path and finds names of processes: more work than all
    the rest of a request's log line.

    Args:
        message: The message, with placeholders.
        arguments: The arguments of the message: numbers and short texts.
        caller: Fields of the caller for formatters; if possible, one object for each caller.
        ids: `request_id` and `global_request_id`.
        extra: Members for structured formats.
    """

    def __init__(
        self,
        message: str,
        arguments: tuple[object, ...],
        caller: Mapping[str, Any],
        ids: Mapping[str, str | None],
        extra: Mapping[str, Any],
    ) -> None:
        fields = _make_common_fields(os.getpid())
        self.__dict__.update(fields)
        self.msg, self.args = message, arguments
        self.created = time.time()
        self.msecs = self.created % 1 * 1000
        self.relativeCreated += (self.created - fields["created"]) * 1000
        self.thread, self.threadName = threading.get_ident(), threading.current_thread().name
        self.caller, self.context, self.extra = caller, {**caller, **ids}, extra


@lru_cache(1)
def _make_common_fields(process: int) -> Mapping[str, Any]:  # noqa: ARG001 - a forked process has other fields
    """Return the fields of a record that is made now."""
    return vars(logging.LogRecord(REQUESTS.name, logging.INFO, __file__, 0, "", (), None))


class OneLineFormatter(logging.Formatter):
    """Escapes characters by which a client could forge or hide a line.

    Each message becomes one line. A traceback keeps its lines, because oslo.log adds its prefix to each of them.
    """

    def __init__(self, inner_formatter: logging.Formatter) -> None:
        super().__init__()
        self._inner_formatter = inner_formatter
        self._second = -1
        self._cached_formats: dict[int, tuple[str, dict[str, Any]]] = {}

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without changing it, because it may have other handlers."""
        if isinstance(text := getattr(record, "formatted", None), str):
            return text
        if isinstance(record, RequestRecord) and type(self._inner_formatter) is ContextFormatter:
            return self._format_request(record, self._inner_formatter)
        if isinstance(self._inner_formatter, JSONFormatter):
            # JSON escapes line breaks.
            return self._inner_formatter.format(record)
        return self._format_clean(_clean(record))

    def _format_clean(self, record: logging.LogRecord) -> str:
        return one_line(self._inner_formatter.format(record), keep="\n")

    def _format_request(self, record: RequestRecord, inner_formatter: ContextFormatter) -> str:
        """Format a line with the members of the caller's first line in this second: a fifth of the formatter's time."""
        second = int(record.created)
        if second != self._second or len(self._cached_formats) >= _MAX_FORMATTED_CALLERS:
            self._second, self._cached_formats = second, {}
        caller, ids = record.caller, record.context
        cached_format = self._cached_formats.get(id(caller))
        request_id, global_request_id = ids["request_id"], ids["global_request_id"]
        if cached_format is None or not request_id:
            cleaned_record = _clean(record)
            text = self._format_clean(cleaned_record)
            format_string = str(inner_formatter.conf.logging_context_format_string)
            if request_id and "isotime" not in format_string:
                # A reference to the caller, so that no new object gets its id.
                self._cached_formats[id(caller)] = (
                    format_string,
                    {**cleaned_record.__dict__, "caller": caller},
                )
            return text
        format_string, members = cached_format
        differing_members = {
            "message": one_line(record.getMessage()),
            "request_id": one_line(request_id),
            "global_request_id": global_request_id and one_line(global_request_id),
        }
        return one_line(
            format_string % {**members, **record.__dict__, **differing_members}, keep="\n"
        )


def _clean(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy with one line for the message and for each text of the context."""
    cleaned_record = copy(record)
    cleaned_record.msg, cleaned_record.args = one_line(record.getMessage()), None
    context = getattr(record, "context", None)
    if isinstance(context, dict):
        cleaned_record.context = {
            name: one_line(value) if isinstance(value, str) else value
            for name, value in context.items()
        }
    return cleaned_record


def count_characters(record: logging.LogRecord) -> int:
    """Return the number of characters in the texts of a record."""
    if isinstance(record, RequestRecord) and isinstance(record.args, tuple):
        return sum(len(value) for value in record.args if isinstance(value, str))
    return len(getattr(record, "formatted", ""))
