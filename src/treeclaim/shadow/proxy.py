# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of a running Placement: its clients get Placement's answers, byte for byte.

Treeclaim is asked after the client has its answer, so it can neither change nor
delay one.
"""

import time
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import httpx

from treeclaim.shadow.messages import Request, Response
from treeclaim.shadow.observer import MOST_BYTES, Observed, Observer, document_of
from treeclaim.shadow.report import Report

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one connection, which a proxy does not pass on (RFC 9110, section 7.6.1)."""

_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_MOST_BODY = 64 << 20
_LONGEST_LINE = 1 << 16
_PIECE = 1 << 16
_SILENCE = 300.0
"""Seconds that Placement may be silent: its slowest searches take minutes."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 75
    upstream: ClassVar[httpx.Client]
    observer: ClassVar[Observer]
    report: ClassVar[Report]

    def _answer(self) -> None:
        body = self._body()
        if body is None:
            return
        headers = [
            (name, value)
            for name, value in self.headers.items()
            if name.lower() not in _HOP_BY_HOP | {"host", "content-length"}
        ]
        request = self.upstream.build_request(
            self.command, "/", headers=headers, content=body or None
        )
        # As the client wrote it: a URL that is read and written again may be another one.
        path = self.upstream.base_url.path.rstrip("/") + self._target
        request.extensions["target"] = path.encode("latin-1")
        began = time.perf_counter()
        try:
            answer = self.upstream.send(request, stream=True)
        except httpx.HTTPError as error:
            self._refuse(HTTPStatus.BAD_GATEWAY, f"Placement does not answer: {error}")
            return
        try:
            self._pass_on(answer, dict(headers), began)
        finally:
            answer.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = _answer  # noqa: N815 - as the library has them

    @property
    def _target(self) -> str:
        """Return the path as the client wrote it: the library removes slashes from `path`."""
        return self.requestline.split(" ")[1]

    def _body(self) -> bytes | None:
        """Return the body of a request; None where it was refused."""
        is_chunked = self.headers.get("transfer-encoding", "").strip().lower() == "chunked"
        length = self.headers.get("content-length", "0")
        body = None
        if is_chunked:
            body = self._chunks()
        elif length.isdigit() and int(length) <= _MOST_BODY:
            body = self.rfile.read(int(length))
        if body is None:
            self._refuse(HTTPStatus.BAD_REQUEST, "the body cannot be read, or is too long")
        return body

    def _chunks(self) -> bytes | None:
        """Return a body that comes in chunks (RFC 9112, section 7.1); None for no such body."""
        pieces: list[bytes] = []
        left = _MOST_BODY
        while (line := self.rfile.readline(_LONGEST_LINE)).endswith(b"\n"):
            try:
                size = int(line.split(b";")[0], 16)
            except ValueError:
                return None
            left -= size
            if size < 0 or left < 0:
                return None
            if not size:
                while self.rfile.readline(_LONGEST_LINE).strip():
                    pass
                return b"".join(pieces)
            pieces.append(self.rfile.read(size))
            self.rfile.readline(_LONGEST_LINE)
        return None

    def _pass_on(self, answer: httpx.Response, headers: Mapping[str, str], began: float) -> None:
        """Give Placement's answer to the client, then have it compared."""
        self.send_response_only(answer.status_code, answer.reason_phrase)
        for name, value in answer.headers.raw:
            if name.lower().decode("latin-1") not in _HOP_BY_HOP:
                self.send_header(name.decode("latin-1"), value.decode("latin-1"))
        has_body = self.command != "HEAD" and answer.status_code not in _WITHOUT_BODY
        is_open = has_body and "content-length" not in answer.headers
        is_chunked = is_open and self.request_version == "HTTP/1.1"
        if is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.close_connection = self.close_connection or (is_open and not is_chunked)
        self.end_headers()
        kept: list[bytes] = []
        size = 0
        for piece in self._sent(answer, is_chunked=is_chunked):
            size += len(piece)
            if size <= MOST_BYTES:
                kept.append(piece)
        seconds = time.perf_counter() - began
        if self.command != "GET":
            return
        if size > MOST_BYTES or "content-encoding" in answer.headers:
            self.report.left_out("the answer is too long, or compressed")
            return
        told = {name.lower(): value for name, value in answer.headers.items()}
        text = b"".join(kept).decode("utf-8", "replace")
        theirs = Response(answer.status_code, told, text, document_of(told, text))
        self.observer.observe(
            Observed(Request(self.command, self._target), headers, theirs, seconds)
        )

    def _sent(self, answer: httpx.Response, *, is_chunked: bool) -> Iterator[bytes]:
        for piece in answer.iter_raw(_PIECE):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked else piece)
            yield piece
        if is_chunked:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        body = f"{text}\n".encode()
        self.close_connection = True
        self.send_response_only(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing: Placement has its own log."""


def proxy(
    host: str, port: int, upstream: str, observer: Observer, report: Report
) -> ThreadingHTTPServer:
    """Return a server that is not started; whoever closes it closes the connections to Placement.

    Args:
        host: Where it listens.
        port: Likewise; 0 for any.
        upstream: URL of the running Placement.
        observer: Is given what was answered to GETs.
        report: Is told what is not compared.

    Raises:
        OSError: if it cannot listen there.
    """
    client = httpx.Client(
        base_url=upstream.rstrip("/"),
        timeout=_SILENCE,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
    )
    # What httpx adds by itself is not the client's.
    client.headers.clear()
    handler = type(
        "Handler",
        (_Handler,),
        {"upstream": client, "observer": observer, "report": report},
    )
    server = ThreadingHTTPServer((host, port), handler)
    server.daemon_threads = True
    return server
