# SPDX-License-Identifier: Apache-2.0
"""Reads the head of a request into a WSGI environment (PEP 3333).

The grammar is llhttp's, in its strict form. These are refused in addition: more than one Host, none in
HTTP/1.1, an invalid Host (RFC 9112, section 3.2), and versions other than 1.0 and 1.1. Headers with an
underscore in their names are left out: WSGI cannot distinguish them from names with a hyphen.
"""

import io
import re
from dataclasses import dataclass, field
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
"""A token of RFC 9110; methods longer than this do not exist."""

_ABSOLUTE = re.compile(rb"(?i)https?://[^/?#]*")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
"""The characters of a host with a port (RFC 3986, section 3.2.2)."""

_VERSIONS = ("1.0", "1.1")
_LENGTH_DIGITS = 18
"""A body of more digits than this is longer than any disk."""


@dataclass(slots=True)
class RequestHead:
    """The head of a request.

    Attributes:
        method, target: As sent; of an absolute URL, path and query.
        keep_alive: Whether the client requests a persistent connection, and the end of the request is certain.
        is_http_1_0: Whether the version is the one without chunks.
        length: Announced bytes of the body.
        is_chunked: Whether the body is sent in chunks instead.
        expects_continue: Whether the client waits for 100 Continue before it sends the body.
        size: Bytes of the request in memory, including its body once that has arrived.
        body: The body once it has arrived.
        environment: For WSGI, without the values that all requests of a connection share.
    """

    method: str
    target: bytes = b""
    keep_alive: bool = True
    is_http_1_0: bool = False
    length: int = 0
    is_chunked: bool = False
    expects_continue: bool = False
    size: int = 0
    body: bytearray | None = None
    environment: dict[str, Any] = field(default_factory=dict)

    def fill_environment(self) -> None:
        """Put path, query and body into the environment, once.

        Decoding the longest path takes milliseconds, so a thread calls this method.
        """
        if self.body is None:
            return
        body, self.body = self.body, None
        self.environment["wsgi.input"] = io.BytesIO(body)
        path, _, query = self.target.partition(b"?")
        if b"%" in path:
            path = unquote_to_bytes(path)
        self.environment["PATH_INFO"] = path.decode("latin-1")
        self.environment["QUERY_STRING"] = query.decode("latin-1")


class ParsedHead:
    """Receives the calls of llhttp.

    Attributes:
        target: The URL as sent.
        headers: Names and values as sent.
        version: Version of HTTP.
        is_complete: Whether the head has ended.
    """

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.version = ""
        self.is_complete = False

    def on_url(self, data: bytes) -> None:
        """Append a piece of the URL."""
        self.target += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """Append a header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note the end of the head."""
        self.is_complete = True


def parse_bytes(data: bytes) -> ParsedHead:
    """Parse a head by llhttp; the caller bounds its length and number of lines.

    Raises:
        ApiError: if it is not HTTP.
    """
    # The head must not refer to the parser: the cycle would keep the request until a garbage collection.
    head = ParsedHead()
    parser = httptools.HttpRequestParser(head)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        # An offer to upgrade is ignored (RFC 9110, 7.8).
        pass
    except httptools.HttpParserError as error:
        text = _BAD_LENGTH if "Content-Length" in str(error) else f"This is not HTTP: {error}"
        raise bad_request(text) from error
    if not head.is_complete:
        raise bad_request("The head of the request is not valid HTTP.")
    head.version = str(parser.get_http_version())
    return head


def read_head(data: bytes) -> RequestHead:
    """Read a head into a WSGI environment; the caller bounds its length and number of lines.

    Raises:
        ApiError: if it is not HTTP, or its URL is too long.
    """
    method, _, after_method = data.partition(b" ")
    if method in _KNOWN_METHODS:
        parsed = parse_bytes(data)
    elif _METHOD.fullmatch(method):
        # llhttp rejects unknown methods, which the application must answer.
        parsed = parse_bytes(b"POST " + after_method)
    else:
        raise bad_request("The request line is not valid HTTP.")
    head = RequestHead(method.decode("ascii"), _read_target(parsed.target))
    head.size = len(data) + HEADER_COST * len(parsed.headers) + REQUEST_COST
    _read_headers(head, parsed)
    head.environment |= {"REQUEST_METHOD": head.method, "SCRIPT_NAME": ""}
    return head


def _read_target(url: bytes) -> bytes:
    if len(url) > TARGET_BYTES:
        raise ApiError(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"The URL is longer than {TARGET_BYTES} bytes."
        )
    target = url.partition(b"#")[0]
    if not target.startswith(b"/"):
        match = _ABSOLUTE.match(target)
        target = target[match.end() :] if match else target
    return target


def _read_headers(head: RequestHead, parsed: ParsedHead) -> None:
    if parsed.version not in _VERSIONS:
        raise ApiError(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "Only HTTP/1.0 and HTTP/1.1 are supported."
        )
    environment = head.environment
    repeated: dict[str, list[str]] = {}
    for name, value in parsed.headers:
        key = _key_of(name)
        text = value.decode("latin-1")
        if key in environment:
            repeated.setdefault(key, [environment[key]]).append(text)
        environment[key] = text
    for key, values in repeated.items():
        environment[key] = ",".join(values)
    environment.pop("", None)
    environment["SERVER_PROTOCOL"] = f"HTTP/{parsed.version}"
    head.is_http_1_0 = parsed.version == "1.0"
    if "HTTP_HOST" in repeated:
        raise bad_request("There is more than one Host header.")
    _check_host(environment.get("HTTP_HOST"), is_optional=head.is_http_1_0)
    _read_connection(head, environment.get("HTTP_CONNECTION", "").lower())
    _read_framing(head, environment)


def _check_host(host: str | None, *, is_optional: bool) -> None:
    if host is None and not is_optional:
        raise bad_request("There is no Host header.")
    if not _HOST.fullmatch((host or "").strip()):
        raise bad_request("The Host header is not valid.")


def _key_of(name: bytes) -> str:
    """Return the WSGI key of a header; empty for a header that is left out."""
    return "" if b"_" in name else "HTTP_" + name.decode("latin-1").upper().replace("-", "_")


def _read_connection(head: RequestHead, value: str) -> None:
    if not value:
        head.keep_alive = not head.is_http_1_0
        return
    tokens = [token.strip() for token in value.split(",")]
    head.keep_alive = "keep-alive" in tokens if head.is_http_1_0 else "close" not in tokens


def _read_framing(head: RequestHead, environment: dict[str, Any]) -> None:
    length = environment.pop("HTTP_CONTENT_LENGTH", None)
    media_type = environment.pop("HTTP_CONTENT_TYPE", None)
    if media_type is not None:
        environment["CONTENT_TYPE"] = media_type
    coding = environment.pop("HTTP_TRANSFER_ENCODING", None)
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise ApiError(
                HTTPStatus.NOT_IMPLEMENTED, "Only the transfer coding chunked is supported."
            )
        head.is_chunked = True
        if head.is_http_1_0:
            # A proxy that passed it on may not have known chunks (RFC 9112, section 6.1).
            head.keep_alive = False
    elif length is not None:
        if not length.isascii() or not length.isdigit():
            raise bad_request(_BAD_LENGTH)
        if len(length) > _LENGTH_DIGITS:
            raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too long.")
        environment["CONTENT_LENGTH"] = length
        head.length = int(length)
    expected = environment.pop("HTTP_EXPECT", "")
    head.expects_continue = not head.is_http_1_0 and expected.lower() == "100-continue"
