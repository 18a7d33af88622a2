# SPDX-License-Identifier: Apache-2.0
"""The outermost WSGI layers: request ids, and a record of each request.

The types of WSGI's `start_response` (PEP 3333) have names: a layer defines such a function for each request, and
Python works out its annotations each time. To make `Callable[[bytes], object]` anew took as long as the rest
of a layer.
"""

import logging
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from prometheus_client import Counter, Histogram

from treeclaim import metrics
from treeclaim.api.pipeline import OPERATION_KEY, VERSION_KEY
from treeclaim.api.protocol.callers import HEADER, assign_request_id, caller_of
from treeclaim.request_lines import REQUESTS, RequestLine, tell_request

Headers = list[tuple[str, str]]
"""Names and values of the headers of an answer."""

Write = Callable[[bytes], object]
"""What `start_response` returns; nobody should use it."""


if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_MESSAGE = '%s "%s %s" status: %s len: %s microversion: %s time: %.6f'

_NO_GUESSING = ("X-Content-Type-Options", "nosniff")

_IN_PATHS = "/:@!$&'()*+,;=-._~"

_IN_QUERIES = _IN_PATHS + "?%"

_PLAIN_PATH = re.compile(r"[/:@!$&'()*+,;=\-._~A-Za-z0-9]*")

_PLAIN_QUERY = re.compile(r"[/:@!$&'()*+,;=\-._~?%A-Za-z0-9]*")
"""Paths and queries that need no quoting, as nearly all."""

_REMEMBERED = 4_096
"""Series: some fifty operations have up to twenty statuses each."""


class CommonHeaders:
    """Gives each request an id, and adds it to the response of any layer.

    It also forbids browsers to sniff the media type: an error may repeat text that an attacker put into
    a link.
    """

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer with the headers."""
        request_id = assign_request_id(environment)

        def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
            common = (_NO_GUESSING, (HEADER, request_id))
            return start_response(status, [*headers, *common], exc_info)

        return self._application(environment, start)


class RequestRecord:
    """Counts and times each request, and logs one line for it (page 05, section 3.1)."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer, count and log."""
        begin = perf_counter()

        def start(status: str, headers: Headers, exc_info: Any = None, /) -> Write:
            code = status.split(" ", 1)[0]
            seconds = perf_counter() - begin
            _count(environment, code, seconds)
            if REQUESTS.isEnabledFor(logging.INFO):
                _log(environment, code, headers, seconds)
            return start_response(status, headers, exc_info)

        return self._application(environment, start)


def _count(environment: "WSGIEnvironment", code: str, seconds: float) -> None:
    operation = environment.get(OPERATION_KEY)
    # Unknown paths are counted together: callers could make up any number of them.
    method, path = ("-", "-") if operation is None else (operation.method, operation.path)
    requests, durations = _series(method, path, code)
    requests.inc()
    durations.observe(seconds)


@lru_cache(_REMEMBERED)
def _series(method: str, path: str, code: str) -> tuple[Counter, Histogram]:
    """Return the counter and timer of one kind of answer; the library's own lookup is slow."""
    return (
        metrics.REQUESTS.labels(method, path, code),
        metrics.REQUEST_SECONDS.labels(method, path),
    )


def _target(environment: "WSGIEnvironment") -> str:
    """Return path and query, quoted as in a URL, so that they are one word of a log line.

    Otherwise a quote or a space in a path could forge the rest of the line.
    """
    path = environment.get("SCRIPT_NAME", "") + environment.get("PATH_INFO", "")
    target = path if _PLAIN_PATH.fullmatch(path) else quote(path, _IN_PATHS, "latin-1", "replace")
    query = environment.get("QUERY_STRING")
    if query:
        plain = _PLAIN_QUERY.fullmatch(query)
        target += "?" + (query if plain else quote(query, _IN_QUERIES, "latin-1", "replace"))
    return target


def _log(environment: "WSGIEnvironment", code: str, headers: Headers, seconds: float) -> None:
    length = next((value for name, value in headers if name.lower() == "content-length"), "-")
    microversion = str(environment.get(VERSION_KEY, "-"))
    arguments = (
        environment.get("REMOTE_ADDR") or "-",
        environment.get("REQUEST_METHOD", "-"),
        _target(environment),
        code,
        length,
        microversion,
        seconds,
    )
    extra = {"status": code, "microversion": microversion, "seconds": round(seconds, 6)}
    who = caller_of(environment)
    tell_request(
        RequestLine(_MESSAGE, arguments, who.logged, who.request_id, who.global_request_id, extra)
    )
