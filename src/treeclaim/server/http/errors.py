# SPDX-License-Identifier: Apache-2.0
"""Errors of the server itself, as documents of contract page 00, section 6."""

import uuid
from http import HTTPStatus

from treeclaim.api.protocol.callers import REQUEST_ID_HEADER
from treeclaim.api.protocol.errors import RETRY_WHEN_BUSY, ApiError
from treeclaim.api.protocol.errors.documents import render_error
from treeclaim.api.protocol.negotiation import JSON


def busy(detail: str = "Too many requests wait.") -> ApiError:
    """Return the error of an overloaded server: 503 with Retry-After."""
    headers = {"Retry-After": RETRY_WHEN_BUSY}
    return ApiError(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)


def render_refusal(error: ApiError, date: str, connection_headers: str) -> bytes:
    """Return the bytes of an error response."""
    request_id = f"req-{uuid.uuid4()}"
    kind, body = render_error(error, accept=JSON, version=None, request_id=request_id)
    headers = {
        "Content-Type": kind,
        "Content-Length": len(body),
        REQUEST_ID_HEADER: request_id,
        "Date": date,
    }
    lines = [f"{name}: {value}" for name, value in (headers | error.headers).items()]
    status_line = f"HTTP/1.1 {error.status.value} {error.status.phrase}"
    return "\r\n".join([status_line, *lines, connection_headers, ""]).encode("latin-1") + body
