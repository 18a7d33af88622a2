# SPDX-License-Identifier: Apache-2.0
"""A successful answer, and how it is written into the HTTP response."""

from http import HTTPStatus
from typing import Any, NamedTuple, cast

import falcon

from treeclaim.api.protocol.negotiation import JSON
from treeclaim.api.protocol.operations.call import Call
from treeclaim.api.protocol.texts import address_of, json_bytes
from treeclaim.api.protocol.timestamps import http_date
from treeclaim.model.microversions import Feature

PIECES_KEY = "treeclaim.takes_pieces"
"""Where a server says, in the WSGI environment, that it takes memoryviews too, and sends a list as it
is. Others may want bytes, and send each piece by itself."""


class Reply(NamedTuple):
    """A successful answer.

    Attributes:
        status: HTTP status.
        body: Something `orjson` can write, ready-made bytes in pieces, or None for no body.
        location: Path of what was created, without the mount prefix.
        modified_at: For Last-Modified from 1.15: seconds since the epoch; None for no cache
            headers.
        is_ready_made: True where the body is an iterable of bytes, or memoryviews. A list of them is
            the whole answer, anything else is streamed.
        content_type: Of the body.
    """

    status: HTTPStatus = HTTPStatus.OK
    body: Any = None
    location: str | None = None
    modified_at: float | None = None
    is_ready_made: bool = False
    content_type: str = JSON


def write_reply(reply: Reply, call: Call, response: falcon.Response) -> None:
    """Put a reply into the HTTP response."""
    response.status = reply.status
    if reply.location is not None:
        response.set_header("Location", address_of(f"{call.request.prefix}{reply.location}"))
    if reply.modified_at is not None and call.has(Feature.CACHE_HEADERS):
        response.set_header("Last-Modified", http_date(reply.modified_at))
        response.set_header("Cache-Control", "no-cache")
    if reply.body is None:
        response.text = None
        response.content_type = None
        return
    response.content_type = reply.content_type
    if not reply.is_ready_made:
        response.data = json_bytes(reply.body)
    elif isinstance(reply.body, list):
        _write_whole(reply.body, call, response)
    else:
        response.stream = reply.body


def _write_whole(pieces: list[bytes | memoryview], call: Call, response: falcon.Response) -> None:
    """Leave the pieces of a whole answer to a server that takes them, or join them."""
    if len(pieces) > 1 and call.request.env.get(PIECES_KEY):
        response.set_stream(cast("Any", pieces), sum(map(len, pieces)))
    else:
        response.data = b"".join(pieces)
