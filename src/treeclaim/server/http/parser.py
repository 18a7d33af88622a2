# SPDX-License-Identifier: Apache-2.0
"""What llhttp finds in the bytes of a request."""

from http import HTTPStatus

import httptools

from treeclaim.server.http.refusals import RefusedError

BAD_LENGTH = "content-length header must be an integer"
"""Contract page 00, section 4."""


class Parsed:
    """Collects what llhttp finds in one request.

    Attributes:
        target: The URL as sent.
        headers: Names and values as sent.
        is_head_complete: Whether the head is whole.
        is_complete: Whether the request is whole.
        messages: How many have begun; more than one where another follows a body of chunks.
        body: Of the chunks so far; None where none are expected.
    """

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_head_complete = False
        self.is_complete = False
        self.messages = 0
        self.body: bytearray | None = None

    def on_message_begin(self) -> None:
        """Count messages: what follows a body of chunks begins another one."""
        self.messages += 1

    def on_url(self, data: bytes) -> None:
        """Take a piece of the URL."""
        self.target += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; those after a body of chunks are of no use."""
        if not self.is_head_complete:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Know that the head is whole."""
        self.is_head_complete = True

    def on_body(self, data: bytes) -> None:
        """Take a piece of a body of chunks."""
        if self.body is not None and not self.is_complete:
            self.body += data

    def on_message_complete(self) -> None:
        """Know that the request is whole."""
        self.is_complete = True


class HeadParser:
    """Parses one request.

    llhttp's object leads to what it tells; if that led back, a request would stay in memory until
    the collector of circles comes, which is rarely.

    Attributes:
        found: What was found so far.
    """

    def __init__(self) -> None:
        self.found = Parsed()
        self._parser = httptools.HttpRequestParser(self.found)

    @property
    def version(self) -> str:
        """The version of HTTP."""
        return str(self._parser.get_http_version())

    def feed(self, data: bytes) -> None:
        """Parse some bytes.

        Raises:
            RefusedError: if they are no HTTP.
        """
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Nothing to upgrade to; the request is answered as if it had not asked (RFC 9110, 7.8).
            self.found.is_complete = True
        except httptools.HttpParserError as error:
            text = BAD_LENGTH if "Content-Length" in str(error) else f"This is no HTTP: {error}"
            raise RefusedError(HTTPStatus.BAD_REQUEST, text) from error
