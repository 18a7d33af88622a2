# SPDX-License-Identifier: Apache-2.0
"""Answers of the server itself, in the form of contract page 00, section 6."""

import uuid
from http import HTTPStatus

import orjson

from treeclaim.server.bounds import HEAD_BYTES, MOST_HEADERS, RETRY_AFTER


class RefusedError(Exception):
    """A request that is not answered by the application.

    Attributes:
        status: What the client is told.
        detail: And why.
    """

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def too_long() -> RefusedError:
    """Return the refusal of a head that is longer than `HEAD_BYTES` or `MOST_HEADERS`."""
    return RefusedError(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"URL and headers are longer than {HEAD_BYTES} bytes, or more than {MOST_HEADERS} headers.",
    )


def refusal(error: RefusedError, date: str, closing_headers: str) -> bytes:
    """Return a whole answer."""
    request_id = f"req-{uuid.uuid4()}"
    status = error.status
    document = {
        "status": status.value,
        "title": status.phrase,
        "detail": f"{error.detail}",
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
    return ("\r\n".join(lines) + f"\r\n{closing_headers}\r\n").encode("latin-1") + body
