# SPDX-License-Identifier: Apache-2.0
"""The outermost WSGI layers: request ids, and one log line for each request."""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from treeclaim.api.pipeline import VERSION_KEY
from treeclaim.api.request_ids import HEADER, assign_request_id

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

_LOG = logging.getLogger("treeclaim.requests")


class RequestIds:
    """Gives each request an id and puts it into the response, whoever answers."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer with the id."""
        request_id = assign_request_id(environment)

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None, /
        ) -> Callable[[bytes], object]:
            return start_response(status, [*headers, (HEADER, request_id)], exc_info)

        return self._application(environment, start)


class RequestLog:
    """Writes one line for each request (contract page 05, section 3.1)."""

    def __init__(self, application: "WSGIApplication") -> None:
        self._application = application

    def __call__(
        self, environment: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        """Answer, and log."""
        if not _LOG.isEnabledFor(logging.INFO):
            return self._application(environment, start_response)

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None, /
        ) -> Callable[[bytes], object]:
            _log(environment, status, headers)
            return start_response(status, headers, exc_info)

        return self._application(environment, start)


def _log(environment: "WSGIEnvironment", status: str, headers: list[tuple[str, str]]) -> None:
    length = next((value for name, value in headers if name.lower() == "content-length"), "-")
    path = environment.get("SCRIPT_NAME", "") + environment.get("PATH_INFO", "")
    if environment.get("QUERY_STRING"):
        path += "?" + environment["QUERY_STRING"]
    _LOG.info(
        '%s "%s %s" status: %s len: %s microversion: %s',
        environment.get("REMOTE_ADDR", "-"),
        environment.get("REQUEST_METHOD", "-"),
        path,
        status.split(" ", 1)[0],
        length,
        environment.get(VERSION_KEY, "-"),
    )
