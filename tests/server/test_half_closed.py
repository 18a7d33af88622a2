# SPDX-License-Identifier: Apache-2.0
"""Clients that close their sending side and wait for the response."""

import contextlib
import http.client
import socket
from contextlib import contextmanager

import pytest

from tests.api.resources.extension.clouds import EXTENDED
from tests.api.resources.extension.watchers import EVENTS, PATH, place_on
from tests.server.fronts import everything, request_of, running
from tests.servers import eventually
from tests.service import HEADERS

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The interim answer by which the server detects whether the client still reads."""


class Echo:
    """Answers each request with its path and body, once the server knows that no more will come.

    Attributes:
        server: The server that runs it.
        paths: Requested paths, in order.
    """

    def __init__(self, waits=True):
        self.server = None
        self.paths = []
        self._waits = waits

    def __call__(self, environment, start_response):
        self.paths.append(environment["PATH_INFO"])
        body = environment["wsgi.input"].read()
        if self._waits:
            eventually(self.is_ended, "the end of the client's half")
        assert not environment["treeclaim.client_gone"]()
        echo = environment["PATH_INFO"].encode() + body
        start_response("200 OK", [("Content-Length", str(len(echo)))])
        return [echo]

    def is_ended(self):
        """Whether the only client has sent all."""
        return all(connection.has_ended for connection in self.server.front.table)


@contextmanager
def connected(application, **limits):
    """A client of a server that runs an application."""
    with (
        running(application, **limits) as application.server,
        application.server.connect() as client,
    ):
        yield client


@pytest.mark.parametrize("count", [1, 20])
def test_requests_before_half_close_are_answered_in_order(count):
    echo = Echo()
    with connected(echo) as client:
        paths = [f"/{number}" for number in range(count)]
        client.sendall(b"".join(request_of("PUT", path, body=b"!") for path in paths))
        client.shutdown(socket.SHUT_WR)
        answers = everything(client).replace(CONTINUE, b"").split(b"HTTP/1.1 200 OK")[1:]
    assert [answer.rpartition(b"\r\n\r\n")[2].decode() for answer in answers] == [
        f"{path}!" for path in paths
    ]
    assert echo.paths == paths


def test_invalid_request_before_half_close_is_answered_with_400():
    with connected(Echo()) as client:
        client.sendall(request_of("PUT", "/first") + b"this is no HTTP\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        data = everything(client).replace(CONTINUE, b"")
    assert data.count(b"HTTP/1.1 ") == 2
    assert b" 400 " in data.partition(b"/first")[2]


@pytest.mark.parametrize(
    "begun",
    [
        b"PUT / HTTP/1.1\r\nHost: a\r\n",
        request_of("PUT", "/", body=b"half of it")[:-5],
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhal",
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"",
    ],
    ids=["head", "body", "chunk", "chunks", "nothing"],
)
def test_incomplete_request_is_dropped_at_half_close(begun):
    echo = Echo(waits=False)
    with connected(echo, header_seconds=1e6, body_seconds=1e6) as client:
        client.sendall(begun)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert everything(client) == b""
    assert echo.paths == []


def test_event_stream_ends_cleanly_for_half_closed_client(tmp_path):
    with place_on("sqlite", tmp_path) as place, place.server.connect() as client:
        client.sendall(request_of("GET", PATH, HEADERS | EXTENDED | EVENTS))
        begun = client.recv(1 << 16)
        assert b" 200 " in begun.partition(b"\r\n")[0]
        client.shutdown(socket.SHUT_WR)
        whole = begun + everything(client)
    assert whole.endswith(b"0\r\n\r\n")


PIECES = 400
PIECE = b"x" * 16_384


class Streaming(Echo):
    """Answers with pieces, most of them after the end of the client's half."""

    def __call__(self, environment, start_response):
        start_response("200 OK", [])
        yield PIECE
        eventually(self.is_ended, "the end of the client's half")
        for _ in range(PIECES - 1):
            yield PIECE


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_streamed_response_is_complete_after_half_close(version):
    with connected(Streaming()) as client:
        client.sendall(request_of("GET", "/", version=version))
        client.shutdown(socket.SHUT_WR)
        data = everything(client)
    assert data.count(b"x") == PIECES * len(PIECE)
    assert version == "1.0" or data.endswith(b"\r\n0\r\n\r\n")


def test_http_client_ignores_the_interim_response():
    echo = Echo()
    with running(echo) as echo.server:
        client = http.client.HTTPConnection(*echo.server.address)
        client.request("PUT", "/path", b"body")
        client.sock.shutdown(socket.SHUT_WR)
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"/pathbody")
        client.close()


@pytest.mark.parametrize(("version", "count"), [("1.0", 0), ("1.1", 1)])
def test_interim_response_is_sent_once_and_only_to_http_1_1(version, count):
    with connected(Echo()) as client:
        client.sendall(request_of("GET", "/", version=version))
        client.shutdown(socket.SHUT_WR)
        data = everything(client)
    assert data.startswith(CONTINUE * count + b"HTTP/1.1 200 OK")
    assert data.count(b"HTTP/1.1") == count + 1


def test_interim_response_is_not_sent_inside_a_response():
    """A thread that sends an answer has begun it, or finds the half-close first."""
    for _ in range(100):
        echo = Echo(waits=False)
        with connected(echo) as client:
            client.sendall(request_of("PUT", "/", body=b"!"))
            client.shutdown(socket.SHUT_WR)
            data = everything(client)
        assert data.replace(CONTINUE, b"", 1).startswith(b"HTTP/1.1 200 OK")
        assert data.endswith(b"/!")
