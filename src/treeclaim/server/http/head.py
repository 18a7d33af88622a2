# SPDX-License-Identifier: Apache-2.0
"""Reads one request's head, keeps its body, and makes the WSGI environment of it (PEP 3333).

The grammar is llhttp's, in its strict form. Of what that accepts, these are refused: more than one
Host, none in HTTP/1.1, one that is not a host (RFC 9112, section 3.2), and versions other than 1.0 and
1.1. Headers with an underscore in their names, which in WSGI cannot be told from those with a hyphen,
are left out, as other servers do.
"""

import io
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

import httptools

from treeclaim.server.bounds import HEADER_COST, REQUEST_COST, TARGET_BYTES
from treeclaim.server.http.refusals import RefusedError

_BAD_LENGTH = "content-length header must be an integer"
"""Contract page 00, section 4."""


class Parsed:
    """Collects what llhttp finds.

    Attributes:
        target: The URL as sent.
        headers: Names and values as sent.
        version: The version of HTTP.
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

    llhttp's object refers to what it reports to, and is gone after this; if that referred back, a request
    would stay in memory until the cycle collector runs, which is rarely.

    Raises:
        RefusedError: if it is not HTTP.
    """
    request = Parsed()
    parser = httptools.HttpRequestParser(request)
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        # Nothing to upgrade to: answered as if it had not been offered (RFC 9110, 7.8).
        pass
    except httptools.HttpParserError as error:
        text = _BAD_LENGTH if "Content-Length" in str(error) else f"This is not HTTP: {error}"
        raise RefusedError(HTTPStatus.BAD_REQUEST, text) from error
    if not request.is_complete:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The head of the request is not valid HTTP.")
    request.version = str(parser.get_http_version())
    return request


_KNOWN_METHODS = frozenset((b"GET", b"PUT", b"POST", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH"))
_METHOD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
"""A token of RFC 9110; methods longer than this do not exist."""

_ABSOLUTE = re.compile(rb"(?i)https?://[^/?#]*")
_HOST = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
"""The characters of a host with a port (RFC 3986, section 3.2.2)."""

_PIECE = 256 * 1024
"""Bytes that are moved at most where one more comes."""

_VERSIONS = ("1.0", "1.1")
_LENGTH_DIGITS = 18
"""A body of more digits than this is longer than any disk."""


class Body:
    """Bytes that come one after the other.

    They are kept in pieces: a buffer that grows as a whole is moved as a whole now and then, which for
    the longest body takes longer than a turn of the event loop may. A thread joins them.

    Attributes:
        size: How many there are.
    """

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self.size = 0
        self._pieces = [bytearray()]

    def write(self, data: bytearray | memoryview) -> int:
        """Add some, and return how many."""
        if len(self._pieces[-1]) >= _PIECE:
            self._pieces.append(bytearray())
        self._pieces[-1] += data
        self.size += len(data)
        return len(data)

    def joined(self) -> bytes:
        """Return all, once; nothing is kept here."""
        pieces, self._pieces = self._pieces, [bytearray()]
        return b"".join(pieces)


@dataclass(slots=True)
class RequestHead:
    """The head of a request.

    Attributes:
        method: As sent.
        target: The path and query of the URL, as sent.
        keep_alive: Whether the connection may be kept: the client wants it, and it can be told where
            the next request begins.
        is_http_1_0: Whether it is of the version before chunks.
        length: Bytes of the body that were announced.
        is_chunked: Whether the body comes in chunks instead.
        expects_continue: Whether the client waits for a word before it sends the body.
        size: Bytes that the request takes in memory: its head, and its body as soon as it has come.
        body: As it has come.
        environment: For WSGI, without what is the same for the whole connection.
    """

    method: str
    target: bytes = b""
    keep_alive: bool = True
    is_http_1_0: bool = False
    length: int = 0
    is_chunked: bool = False
    expects_continue: bool = False
    size: int = 0
    body: Body | None = None
    environment: dict[str, Any] = field(default_factory=dict)

    def fill(self) -> None:
        """Put path, query and body into the environment, once.

        For the longest ones this takes milliseconds, so a thread does it, not the event loop.
        """
        if self.body is None:
            return
        body, self.body = self.body, None
        self.environment["wsgi.input"] = io.BytesIO(body.joined())
        path, _, query = self.target.partition(b"?")
        if b"%" in path:
            path = unquote_to_bytes(path)
        self.environment["PATH_INFO"] = path.decode("latin-1")
        self.environment["QUERY_STRING"] = query.decode("latin-1")


def read_head(data: bytes) -> RequestHead:
    """Read a head that ends with an empty line, whose length and number of lines are bounded.

    Raises:
        RefusedError: if it is not HTTP, or its URL is too long.
    """
    method, _, rest = data.partition(b" ")
    if method in _KNOWN_METHODS:
        request = parsed(data)
    elif _METHOD.fullmatch(method):
        # llhttp has a list of methods; the application decides what an unknown one means.
        request = parsed(b"POST " + rest)
    else:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The request line is not valid HTTP.")
    head = RequestHead(method.decode("ascii"), _target_of(request.target))
    head.size = len(data) + HEADER_COST * len(request.headers) + REQUEST_COST
    _fill_headers(head, request)
    head.environment |= {"REQUEST_METHOD": head.method, "SCRIPT_NAME": ""}
    return head


def _target_of(sent: bytes) -> bytes:
    """Return path and query of a URL, which may be an absolute one."""
    if len(sent) > TARGET_BYTES:
        raise RefusedError(
            HTTPStatus.REQUEST_URI_TOO_LONG, f"The URL is longer than {TARGET_BYTES} bytes."
        )
    target = sent.partition(b"#")[0]
    if not target.startswith(b"/"):
        match = _ABSOLUTE.match(target)
        target = target[match.end() :] if match else target
    return target


def _fill_headers(head: RequestHead, request: Parsed) -> None:
    if request.version not in _VERSIONS:
        raise RefusedError(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "Only HTTP/1.0 and HTTP/1.1 are supported."
        )
    environment = head.environment
    repeated: dict[str, list[str]] = {}
    for name, value in request.headers:
        key = _KEYS.get(name) or _key_of(name)
        text = value.decode("latin-1")
        if key in environment:
            repeated.setdefault(key, [environment[key]]).append(text)
        environment[key] = text
    for key, several in repeated.items():
        environment[key] = ",".join(several)
    environment.pop("", None)
    environment["SERVER_PROTOCOL"] = f"HTTP/{request.version}"
    head.is_http_1_0 = request.version == "1.0"
    _check_host(head, is_repeated="HTTP_HOST" in repeated)
    _fill_connection(head, environment.get("HTTP_CONNECTION", "").lower())
    _fill_body(head, environment)


def _check_host(head: RequestHead, *, is_repeated: bool) -> None:
    if is_repeated:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "There is more than one Host header.")
    given = head.environment.get("HTTP_HOST")
    if given is None and not head.is_http_1_0:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "There is no Host header.")
    if not _HOST.fullmatch((given or "").strip()):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "The Host header is not valid.")


def _key_of(name: bytes) -> str:
    """Return the name of a header in WSGI, empty for one that is left out."""
    return "" if b"_" in name else "HTTP_" + name.decode("latin-1").upper().replace("-", "_")


_USUAL = (
    *("Host", "User-Agent", "Accept", "Accept-Encoding", "Connection", "Content-Type"),
    *("Content-Length", "X-Auth-Token", "OpenStack-API-Version", "X-Openstack-Request-Id"),
    *("X-Service-Token", "Traceparent", "X-Forwarded-For", "X-Forwarded-Proto"),
)
_KEYS = {
    spelling.encode(): _key_of(name.encode())
    for name in _USUAL
    for spelling in (name, name.lower())
}
"""Names of headers that nearly every request has, as clients spell them; a fixed number."""


def _fill_connection(head: RequestHead, wishes: str) -> None:
    if not wishes:
        head.keep_alive = not head.is_http_1_0
        return
    tokens = [token.strip() for token in wishes.split(",")]
    head.keep_alive = "keep-alive" in tokens if head.is_http_1_0 else "close" not in tokens


def _fill_body(head: RequestHead, environment: dict[str, Any]) -> None:
    """Say how the body comes; the names of its two headers have no HTTP_ in WSGI."""
    length = environment.pop("HTTP_CONTENT_LENGTH", None)
    kind = environment.pop("HTTP_CONTENT_TYPE", None)
    if kind is not None:
        environment["CONTENT_TYPE"] = kind
    coding = environment.pop("HTTP_TRANSFER_ENCODING", None)
    if coding is not None:
        if coding.strip().lower() != "chunked":
            raise RefusedError(
                HTTPStatus.NOT_IMPLEMENTED, "Only the transfer coding chunked is supported."
            )
        head.is_chunked = True
        if head.is_http_1_0:
            # A proxy that passed it on may not have known chunks (RFC 9112, section 6.1).
            head.keep_alive = False
    elif length is not None:
        if not length.isascii() or not length.isdigit():
            raise RefusedError(HTTPStatus.BAD_REQUEST, _BAD_LENGTH)
        if len(length) > _LENGTH_DIGITS:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too long.")
        environment["CONTENT_LENGTH"] = length
        head.length = int(length)
    expected = environment.pop("HTTP_EXPECT", "")
    head.expects_continue = not head.is_http_1_0 and expected.lower() == "100-continue"
