# SPDX-License-Identifier: Apache-2.0
"""Reads the head of a request into a WSGI environment (PEP 3333).

The grammar is llhttp's strict one. In addition, repeated and invalid Host headers, HTTP/1.1 without Host (RFC 9112,
section 3.2), and versions other than 1.0 and 1.1 are refused. Headers with an underscore in their names are dropped,
since WSGI cannot distinguish them from names with a hyphen.
"""

import io
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

from treeclaim.api.protocol.errors import ApiError, bad_request
from treeclaim.server.bounds import HEADER_COST, REQUEST_COST, TARGET_BYTES

_BAD_LENGTH = "content-length header must be an integer"
"""Contract page 00, section 4."""

_KNOWN_METHODS = frozenset((b"GET", b"PUT", b"POST", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH"))
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
"""A token of RFC 9110; all methods are shorter."""

_ABSOLUTE = re.compile(rb"(?i)https?://[^/?#]*")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
"""The characters of a host with a port (RFC 3986, section 3.2.2)."""

_VERSIONS = ("1.0", "1.1")
_LENGTH_DIGITS = 18
"""Most digits of Content-Length; a longer body exceeds any disk."""


class RequestHead:
    """The head of a request. The parser calls the methods `on_…`.

    Attributes:
        target: Path and query in the client's spelling.
        keep_alive: Whether the client requests a persistent connection, and the end of the request is certain.
        is_http_1_0: Whether the version is the one without chunks.
        length: Content-Length.
        expects_continue: Whether the client waits for 100 Continue before it sends the body.
        size: Bytes of the request in memory, including a body that has arrived.
        body: The body once it has arrived.
        environment: The WSGI environment, without the values that all requests of a connection share.
        is_complete: Whether the head has ended.
    """

    def __init__(self, method: str) -> None:
        self.method = method
        self.target = b""
        self.keep_alive = True
        self.is_http_1_0 = self.is_chunked = self.expects_continue = self.is_complete = False
        self.length = 0
        self.size = REQUEST_COST
        self.body: bytearray | None = None
        self.environment: dict[str, Any] = {"REQUEST_METHOD": method, "SCRIPT_NAME": ""}
        self._repeated_headers: dict[str, list[str]] = {}

    def on_url(self, data: bytes) -> None:
        """Append a part of the URL."""
        self.target += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header to the environment unless its name contains an underscore."""
        self.size += HEADER_COST
        if b"_" in name:
            return
        key = "HTTP_" + name.decode("latin-1").upper().replace("-", "_")
        text = value.decode("latin-1")
        if key in self.environment:
            self._repeated_headers.setdefault(key, [self.environment[key]]).append(text)
        self.environment[key] = text

    def on_headers_complete(self) -> None:
        """Note the end of the head."""
        self.is_complete = True

    def finish(self, version: str) -> None:
        """Read the target and the headers that the server uses; raise ApiError if they are invalid."""
        if len(self.target) > TARGET_BYTES:
            detail = f"The URL is longer than {TARGET_BYTES} bytes."
            raise ApiError(HTTPStatus.REQUEST_URI_TOO_LONG, detail)
        self.target = self.target.partition(b"#")[0]
        if not self.target.startswith(b"/") and (match := _ABSOLUTE.match(self.target)):
            self.target = self.target[match.end() :]
        if version not in _VERSIONS:
            detail = "Only HTTP/1.0 and HTTP/1.1 are supported."
            raise ApiError(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, detail)
        self.is_http_1_0 = version == "1.0"
        environment = self.environment
        environment["SERVER_PROTOCOL"] = f"HTTP/{version}"
        for key, values in self._repeated_headers.items():
            environment[key] = ",".join(values)
        host = environment.get("HTTP_HOST")
        if "HTTP_HOST" in self._repeated_headers:
            raise bad_request("There is more than one Host header.")
        if host is None and not self.is_http_1_0:
            raise bad_request("There is no Host header.")
        if not _HOST.fullmatch((host or "").strip()):
            raise bad_request("The Host header is not valid.")
        tokens = [
            token.strip() for token in environment.get("HTTP_CONNECTION", "").lower().split(",")
        ]
        self.keep_alive = "keep-alive" in tokens if self.is_http_1_0 else "close" not in tokens
        if "HTTP_CONTENT_TYPE" in environment:
            environment["CONTENT_TYPE"] = environment.pop("HTTP_CONTENT_TYPE")
        self._read_framing(
            environment.pop("HTTP_TRANSFER_ENCODING", None),
            environment.pop("HTTP_CONTENT_LENGTH", None),
        )
        expectation = environment.pop("HTTP_EXPECT", "")
        self.expects_continue = not self.is_http_1_0 and expectation.lower() == "100-continue"

    def _read_framing(self, coding: str | None, length: str | None) -> None:
        if coding is not None:
            if coding.strip().lower() != "chunked":
                detail = "Only the transfer coding chunked is supported."
                raise ApiError(HTTPStatus.NOT_IMPLEMENTED, detail)
            self.is_chunked = True
            if self.is_http_1_0:
                # The proxy that forwarded the request may not support chunks (RFC 9112, section 6.1).
                self.keep_alive = False
        elif length is not None:
            if not length.isascii() or not length.isdigit():
                raise bad_request(_BAD_LENGTH)
            if len(length) > _LENGTH_DIGITS:
                raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too long.")
            self.environment["CONTENT_LENGTH"] = length
            self.length = int(length)

    def fill_environment(self) -> None:
        """Add path, query and body to the environment, in a thread: decoding the longest path takes milliseconds."""
        if self.body is None:
            return
        body, self.body = self.body, None
        self.environment["wsgi.input"] = io.BytesIO(body)
        path, _, query = self.target.partition(b"?")
        if b"%" in path:
            path = unquote_to_bytes(path)
        self.environment["PATH_INFO"] = path.decode("latin-1")
        self.environment["QUERY_STRING"] = query.decode("latin-1")


def read_head(data: bytes) -> RequestHead:
    """Parse a head whose length and number of lines the caller has bounded.

    Raises:
        ApiError: if it is invalid HTTP, or its URL is too long.
    """
    method, _, after_method = data.partition(b" ")
    if not _METHOD.fullmatch(method):
        raise bad_request("The request line is not valid HTTP.")
    if method not in _KNOWN_METHODS:
        # The application answers unknown methods, which llhttp rejects.
        data = b"POST " + after_method
    # A reference from the head to the parser would keep the request until a garbage collection.
    head = RequestHead(method.decode("ascii"))
    head.size += len(data)
    parser = httptools.HttpRequestParser(head)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        # The server ignores Upgrade (RFC 9110, 7.8).
        pass
    except httptools.HttpParserError as error:
        text = _BAD_LENGTH if "Content-Length" in str(error) else f"This is not HTTP: {error}"
        raise bad_request(text) from error
    if not head.is_complete:
        raise bad_request("The head of the request is not valid HTTP.")
    head.finish(str(parser.get_http_version()))
    return head
