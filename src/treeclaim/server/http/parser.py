# SPDX-License-Identifier: Apache-2.0
"""What llhttp finds in the head of a request."""

from http import HTTPStatus

import httptools

from treeclaim.server.http.refusals import RefusedError

BAD_LENGTH = "content-length header must be an integer"
"""Contract page 00, section 4."""


class Parsed:
    """Collects what llhttp finds.

    Attributes:
        target: The URL as sent.
        headers: Names and values as sent.
        version: Of HTTP.
        is_complete: Whether the head is whole.
    """

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.version = ""
        self.is_complete = False

    def on_url(self, data: bytes) -> None:
        """Take a piece of the URL."""
        self.target += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Know that the head is whole."""
        self.is_complete = True


def parsed(data: bytes) -> Parsed:
    """Parse a head that ends with an empty line, whose length and number of lines are bounded.

    llhttp's object leads to what it tells and is gone after this; if that led back, a request would
    stay in memory until the collector of circles comes, which is rarely.

    Raises:
        RefusedError: if it is no HTTP.
    """
    request = Parsed()
    parser = httptools.HttpRequestParser(request)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        # Nothing to upgrade to: answered as if it had not been offered (RFC 9110, 7.8).
        pass
    except httptools.HttpParserError as error:
        text = BAD_LENGTH if "Content-Length" in str(error) else f"This is no HTTP: {error}"
        raise RefusedError(HTTPStatus.BAD_REQUEST, text) from error
    if not request.is_complete:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The head of the request is not that of HTTP.")
    request.version = str(parser.get_http_version())
    return request
