# SPDX-License-Identifier: Apache-2.0
"""The outermost WSGI layers: common headers, the record of each request, and unread bodies.

The types of `start_response` (PEP 3333) are module constants: layers define that function for each request, and
evaluating `Callable[[bytes], object]` took as long as the remainder of a layer.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from falcon.stream import BoundedStream
from prometheus_client import Counter, Histogram

from treeclaim import metrics
from treeclaim.api.pipeline import OPERATION_KEY, VERSION_KEY
from treeclaim.api.protocol.callers import (
    GLOBAL_REQUEST_ID,
    REQUEST_ID_HEADER,
    assign_request_id,
    make_log_fields,
    read_request_id,
)
from treeclaim.helper_threads import run_guarded
from treeclaim.log_lines import REQUESTS, RequestRecord

Headers = list[tuple[str, str]]
"""Names and values of the headers of an answer."""

Write = Callable[[bytes], object]
"""The deprecated result of `start_response`."""


if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_MESSAGE = '%s "%s %s" status: %s len: %s microversion: %s time: %.6f'

_NO_SNIFFING = ("X-Content-Type-Options", "nosniff")

_IN_PATHS = "/:@!$&'()*+,;=-._~"

_IN_QUERIES = _IN_PATHS + "?%"

_LONGEST_TARGET = 4_096
"""Most characters of path and query in a log line: a client may send 64 KiB."""

_MOST_SERIES = 4_096
"""Most cached series: some fifty operations have up to twenty statuses each."""

_PIECE = 16 * 1024
"""Bytes of a read; it returns when these, or the last bytes of the body, have arrived."""

_DRAIN_SECONDS = 30.0
"""Most seconds of reading, checked after each piece. The time of a piece is limited by uWSGI (socket-timeout) and Apache
(RequestReadTimeout), not by gunicorn."""


class RequestLayer:
    """The outermost layer: request ids, common headers, metrics and the log line (page 05, section 3.1).

    It forbids browsers to guess the media type, as an error may repeat the text of an attacker's link.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer, count and log."""
        begin = perf_counter()
        request_id = assign_request_id(environment)

        def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
            code = status.split(" ", 1)[0]
            seconds = perf_counter() - begin
            # A failure of metrics or logs must not fail the request.
            run_guarded("request log", lambda: _record(environment, code, headers, seconds))
            common_headers = (_NO_SNIFFING, (REQUEST_ID_HEADER, request_id))
            return start_response(status, [*headers, *common_headers], exc_info)

        return self._application(environment, start)


def _record(environment: "WSGIEnvironment", code: str, headers: Headers, seconds: float) -> None:
    _count(environment, code, seconds)
    if REQUESTS.isEnabledFor(logging.INFO):
        _log(environment, code, headers, seconds)


def _count(environment: "WSGIEnvironment", code: str, seconds: float) -> None:
    operation = environment.get(OPERATION_KEY)
    # Unknown paths share a series, as callers could send any number of them.
    method, path = ("-", "-") if operation is None else (operation.method, operation.path)
    requests, durations = _find_series(method, path, code)
    requests.inc()
    durations.observe(seconds)


@lru_cache(_MOST_SERIES)
def _find_series(method: str, path: str, code: str) -> tuple[Counter, Histogram]:
    """Return the counter and timer of a series; the library's lookup is slow."""
    return (
        metrics.REQUESTS.labels(method, path, code),
        metrics.REQUEST_SECONDS.labels(method, path),
    )


def _quote_target(environment: "WSGIEnvironment") -> str:
    # A quote or a space in a path could forge the remainder of the log line.
    path = environment.get("SCRIPT_NAME", "") + environment.get("PATH_INFO", "")
    target = quote(path, _IN_PATHS, "latin-1", "replace")
    query = environment.get("QUERY_STRING")
    if query:
        target += "?" + quote(query, _IN_QUERIES, "latin-1", "replace")
    return _shorten(target)


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_TARGET else f"{text[:_LONGEST_TARGET]}..."


def _log(environment: "WSGIEnvironment", code: str, headers: Headers, seconds: float) -> None:
    length = next((value for name, value in headers if name.lower() == "content-length"), "-")
    microversion = str(environment.get(VERSION_KEY, "-"))
    arguments = (
        environment.get("REMOTE_ADDR") or "-",
        _shorten(environment.get("REQUEST_METHOD", "-")),
        _quote_target(environment),
        code,
        length,
        microversion,
        seconds,
    )
    extra = {"status": code, "microversion": microversion, "seconds": round(seconds, 6)}
    caller = make_log_fields(environment)
    ids = {
        "request_id": read_request_id(environment),
        "global_request_id": environment.get(GLOBAL_REQUEST_ID),
    }
    REQUESTS.handle(RequestRecord(_MESSAGE, arguments, caller, ids, extra))


class Draining:
    """Reads the unread remainder of each body (contract page 00, section 4).

    After an early answer, some WSGI servers parse the remainder of the body as the next request. Others reset the
    connection, which may lose the answer. `treeclaim serve` reads bodies itself and does not use this layer.

    A body beyond `most_bytes` is not read; the answer closes the connection.
    """

    def __init__(self, application: "WSGIApplication", most_bytes: int) -> None:
        self._application = application
        self._most_bytes = most_bytes

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Return the answer after the body has been read."""
        length = _read_length(environment)
        if length <= 0:
            return self._application(environment, start_response)
        if length > self._most_bytes:
            return self._application(environment, _close_after(start_response))
        body = BoundedStream(environment["wsgi.input"], length)
        environment["wsgi.input"] = body
        answer = self._application(environment, start_response)
        end = monotonic() + _DRAIN_SECONDS
        # The client may have disconnected.
        with suppress(OSError, ValueError):
            while not body.eof and monotonic() < end:
                body.read(_PIECE)
        return answer


def _read_length(environment: "WSGIEnvironment") -> int:
    text = environment.get("CONTENT_LENGTH") or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _close_after(start_response: "StartResponse") -> "StartResponse":
    def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
        return start_response(status, [*headers, ("Connection", "close")], exc_info)

    return start
