# SPDX-License-Identifier: Apache-2.0
"""Answers that the server gives by itself, in the form of contract page 00, section 6."""

import uuid
from http import HTTPStatus

import orjson

from treeclaim.server.bounds import RETRY_AFTER
from treeclaim.server.requests import RefusedError


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
