# SPDX-License-Identifier: Apache-2.0
"""Errors that the server answers without the application, as documents of contract page 00, section 6."""

import uuid
from http import HTTPStatus

import orjson

from treeclaim.server.bounds import RETRY_AFTER


class RefusedError(Exception):
    """A request that the application does not answer.

    Attributes:
        status: Status of the answer.
        detail: Reason, for the client.
    """

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class BusyError(RefusedError):
    """The server is overloaded: 503 with Retry-After."""

    def __init__(self, detail: str = "Too many requests wait.") -> None:
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, detail)


def render_refusal(error: RefusedError, date: str, connection_headers: str) -> bytes:
    """Return the whole answer."""
    request_id = f"req-{uuid.uuid4()}"
    status = error.status
    document = {
        "status": status.value,
        "title": status.phrase,
        "detail": error.detail,
        "request_id": request_id,
    }
    body = orjson.dumps({"errors": [document]})
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"x-openstack-request-id: {request_id}",
        f"Date: {date}",
    ]
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        lines.append(f"Retry-After: {RETRY_AFTER}")
    return ("\r\n".join(lines) + f"\r\n{connection_headers}\r\n").encode("latin-1") + body
