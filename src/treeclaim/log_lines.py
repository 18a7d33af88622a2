# SPDX-License-Identifier: Apache-2.0
"""The records of requests, and lines that no client can forge."""

import logging
from collections.abc import Mapping
from copy import copy
from typing import Any

from oslo_log.formatters import JSONFormatter

from treeclaim.model.texts import one_line

REQUESTS = logging.getLogger("treeclaim.requests")
"""The logger that has one line for each request, see `api.middleware.layers`."""


def make_request_record(
    message: str,
    arguments: tuple[object, ...],
    context: Mapping[str, Any],
    extra: Mapping[str, Any],
) -> logging.LogRecord:
    """Return the record of a request; the log thread does all work that can wait.

    Args:
        message: The message, with placeholders.
        arguments: The arguments of the message: numbers and short texts.
        context: What formatters show of the caller and the request.
        extra: Members for structured formats.
    """
    record = logging.LogRecord(REQUESTS.name, logging.INFO, __file__, 0, message, arguments, None)
    record.context, record.extra = context, extra
    return record


def is_of_request(record: logging.LogRecord) -> bool:
    """Return whether a record is of a request, so that it needs no more memory than its line."""
    return record.name == REQUESTS.name


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
    if is_of_request(record) and isinstance(record.args, tuple):
        return sum(len(value) for value in record.args if isinstance(value, str))
    return len(getattr(record, "formatted", ""))
