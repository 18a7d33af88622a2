# SPDX-License-Identifier: Apache-2.0
"""HTTP of the server: the environment, bodies, framing, persistent connections."""

import threading
from contextlib import ExitStack

import pytest

from tests.server.fronts import HELLO, hello, is_closed, receive, running
from tests.servers import eventually
from treeclaim.server.bounds import ACCEPTED_AT_ONCE
from treeclaim.server.http.table import Phase

CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def request_of_lines(*lines, body=b""):
    """Return the bytes of a request with these header lines."""
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Echo:
    """An application that returns the body, and stores the environment of the last request."""

    environment = None

    def __call__(self, environment, start_response):
        self.environment = environment
        body = environment["wsgi.input"].read()
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [body]


def test_environment_follows_wsgi():
    echo = Echo()
    with running(echo) as server:
        server.ask(
            request_of_lines(
                "GET /a%20b/%E2%98%83?q=%20&x HTTP/1.1",
                "Host: placement.example:1",
                "X-Two: one",
                "x-two: two",
                "X_Roles: admin",
                "Content-Type: text/x",
                "Expect: nothing",
            )
        )
    environment = echo.environment
    assert environment["REQUEST_METHOD"] == "GET"
    assert environment["PATH_INFO"].encode("latin-1").decode() == "/a b/☃"
    assert environment["QUERY_STRING"] == "q=%20&x"
    assert environment["HTTP_HOST"] == "placement.example:1"
    assert environment["HTTP_X_TWO"] == "one,two"
    assert "HTTP_X_ROLES" not in environment
    assert environment["CONTENT_TYPE"] == "text/x"
    assert environment["SERVER_PROTOCOL"] == "HTTP/1.1"
    assert environment["REMOTE_ADDR"] == "127.0.0.1"
    assert environment["wsgi.url_scheme"] == "http"
    assert "CONTENT_LENGTH" not in environment


@pytest.mark.parametrize(
    ("line", "method", "query"),
    [
        ("GET /x HTTP/1.1", "GET", ""),
        ("MADE-UP /x HTTP/1.1", "MADE-UP", ""),
        ("CONNECT /x HTTP/1.1", "CONNECT", ""),
        ("GET HTTP://elsewhere:1/x?b HTTP/1.1", "GET", "b"),
    ],
)
def test_any_method_and_absolute_urls_reach_the_application(line, method, query):
    echo = Echo()
    with running(echo) as server:
        assert server.ask(request_of_lines(line, "Host: a")).status == 200
    names = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING")
    assert tuple(echo.environment[name] for name in names) == (method, "/x", query)


def test_maximum_number_of_headers_is_read_at_any_split():
    head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A:\r\n" * 199
    with running() as server, server.connect() as client:
        for cut in range(len(head) - 1, len(head) + 2):
            data = head + b"\r\n"
            client.sendall(data[:cut])
            eventually(lambda: server.front.table.count(Phase.READING) == 1, "the first part came")
            client.sendall(data[cut:])
            assert receive(client).status == 200


def test_request_after_a_chunked_body_is_answered():
    body = b"3;x=y\r\nabc\r\n0\r\nTrailer: x\r\n\r\n"
    with running(Echo()) as server, server.connect() as client:
        client.sendall((CHUNKED + body) * 20)
        data = b""
        while data.count(b"abc") < 20:
            data += client.recv(1 << 16)
        assert data.count(b"HTTP/1.1 200") == 20


def test_offered_upgrade_is_ignored():
    """Java's client offers h2c with each first request."""
    offer = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n\r\n"
    )
    bodies = {
        b"Transfer-Encoding: chunked\r\n": b"3\r\nabc\r\n0\r\n\r\n",
        b"Content-Length: 3\r\n": b"abc",
    }
    with running(Echo()) as server, server.connect() as client:
        for header, body in bodies.items():
            for _ in range(2):
                client.sendall(b"PUT / HTTP/1.1\r\nHost: a\r\n" + header + offer + body)
                answer = receive(client)
                assert (answer.status, answer.body, answer.says_close) == (200, b"abc", False)


@pytest.mark.parametrize("behind", [b"", HELLO])
def test_chunked_http_1_0_request_closes_the_connection(behind):
    asks = b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    with running(Echo()) as server, server.connect() as client:
        client.sendall(asks + b"3\r\nabc\r\n0\r\n\r\n" + behind)
        answer = receive(client)
        assert (answer.status, answer.says_close) == (200, True)
        # The remaining bytes are not parsed as a request.
        assert client.recv(1) == b""


def test_expect_continue_gets_100_continue():
    with running(Echo()) as server, server.connect() as client:
        client.sendall(
            request_of_lines(
                "PUT / HTTP/1.1", "Host: a", "Content-Length: 3", "Expect: 100-continue"
            )
        )
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"abc")
        assert receive(client).body == b"abc"


@pytest.mark.parametrize("coding", ["Content-Length: 3000000", "Transfer-Encoding: chunked"])
def test_oversized_body_is_not_read_and_the_response_arrives(coding):
    lengths = []

    def refuses(environment, start_response):
        lengths.append(int(environment["CONTENT_LENGTH"]))
        body = b"too long"
        start_response("413 Request Entity Too Large", [("Content-Length", str(len(body)))])
        return [body]

    with running(refuses, body_bytes=100_000) as server, server.connect() as client:
        client.sendall(request_of_lines("PUT / HTTP/1.1", "Host: a", coding))
        prefix = b"2dc6c0\r\n" if "chunked" in coding else b""
        client.sendall(prefix + b"x" * 3_000_000)
        answer = receive(client)
        assert (answer.status, answer.body, answer.says_close) == (413, b"too long", True)
        assert is_closed(client)
    assert lengths[0] > 100_000


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nAccept: */*\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        (b"GET http://a/ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: two\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: -2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: a\nY: b\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 500_000, 431),
        (b"GET / HTTP/1.1\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"A:\r\n" * 200 + b"\r\n", 431),
        (CHUNKED + b"1;" + b"x" * 2_000, 400),
        (CHUNKED + b"1\r\nab\r\n0\r\n\r\n", 400),
        (CHUNKED + b"1\nx\n0\n\n", 400),
        (CHUNKED + b"-1\r\nx\r\n0\r\n\r\n", 400),
        (CHUNKED + b"f" * 16 + b"\r\n", 400),
        (CHUNKED + b"0\r\nX: " + b"a" * 9_000, 431),
        (CHUNKED + b"0\r\n" + b"A:\r\n" * 201 + b"\r\n", 431),
        (CHUNKED + b"0\r\nno colon\r\n\r\n", 400),
    ],
    ids=range(28),
)
def test_invalid_http_is_refused_with_an_error_document(data, status):
    with running() as server, server.connect() as client:
        client.sendall(data)
        answer = receive(client)
        assert (answer.status, answer.says_close) == (status, True)
        assert answer.headers["x-openstack-request-id"].startswith("req-")
        assert b'"errors":[{"status":%d' % status in answer.body
        assert is_closed(client)
        assert server.ask().status == 200


def test_keep_alive_follows_version_and_connection_header():
    cases = {
        (b"1.1", b""): False,
        (b"1.1", b"Connection: close\r\n"): True,
        (b"1.1", b"Connection: x, Close\r\n"): True,
        (b"1.0", b""): True,
        (b"1.0", b"Connection: keep-alive\r\n"): False,
    }
    with running(keep_alive_seconds=7.0) as server:
        for (version, header), closes in cases.items():
            with server.connect() as client:
                # Only HTTP/1.1 requires the host.
                host = b"Host: a\r\n" if version == b"1.1" else b""
                client.sendall(b"GET / HTTP/%b\r\n%b%b\r\n" % (version, host, header))
                answer = receive(client)
                assert answer.says_close == closes, (version, header)
                assert ("keep-alive" in answer.headers) != closes
                if closes:
                    assert is_closed(client)
                else:
                    assert answer.headers["keep-alive"] == "timeout=7"
                    client.sendall(HELLO)
                    assert receive(client).status == 200


@pytest.mark.slow
def test_kept_connection_closes_after_its_advertised_timeout():
    with running(keep_alive_seconds=1.0) as server, server.connect() as client:
        client.sendall(HELLO)
        assert receive(client).headers["keep-alive"] == "timeout=1"
        assert is_closed(client)


def answering(status, headers, body):
    """Return an application with one answer."""

    def answer(_environment, start_response):
        start_response(status, headers)
        return body

    return answer


def test_responses_without_a_body_send_none():
    for status, method in (("204 No Content", "GET"), ("304 Not Modified", "GET")):
        with running(answering(status, [], [b"body"])) as server, server.connect() as client:
            for _ in range(2):
                # The client would read bytes of a body as the next answer.
                client.sendall(HELLO)
                assert receive(client, method).body == b""
    with running(hello) as server, server.connect() as client:
        client.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(4096).endswith(b"\r\n\r\n")


@pytest.mark.slow
def test_streamed_response_is_complete_in_http_1_0_and_1_1():
    pieces = [bytes([number % 256]) * (number * 97 % 5000) for number in range(2000)]
    stream = answering("200 OK", [("Content-Type", "text/plain")], None)

    def streams(environment, start_response):
        stream(environment, start_response)
        return iter(pieces)

    with running(streams) as server:
        for version in (b"1.1", b"1.0"):
            answer = server.ask(b"GET / HTTP/%b\r\nHost: a\r\n\r\n" % version)
            assert answer.body == b"".join(pieces)
        with server.connect() as client:
            for _ in range(3):
                client.sendall(HELLO)
                assert receive(client).body == b"".join(pieces)


def test_application_error_gives_500_or_a_truncated_response():
    def breaks(environment, start_response):
        if environment["PATH_INFO"] == "/before":
            raise RuntimeError("before")
        start_response("200 OK", [])

        def pieces():
            yield b"x"
            raise RuntimeError("after")

        return pieces()

    with running(breaks) as server:
        with server.connect() as client:
            client.sendall(b"GET /before HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = receive(client)
            assert (answer.status, answer.says_close) == (500, False)
            assert b"before" not in answer.body
        with server.connect() as client:
            client.sendall(HELLO)
            answer = None
            try:
                answer = receive(client)
            except ConnectionResetError:
                return
            assert answer is None or not answer.is_complete


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\nb", "a\rb", "☃"])
def test_response_header_with_line_break_gives_500(value):
    with running(answering("200 OK", [("X", value)], [b"x"])) as server:
        answer = server.ask()
        assert answer.status == 500
        assert "set-cookie" not in answer.headers


def test_stopping_server_finishes_requests_with_connection_close():
    begun, release = threading.Event(), threading.Event()

    def slow(_environment, start_response):
        begun.set()
        release.wait()
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    with running(slow) as server, server.connect() as client:
        client.sendall(HELLO)
        begun.wait()
        server.begin_stop()
        eventually(lambda: server.front.is_stopping, "it stops")
        release.set()
        answer = receive(client)
        assert (answer.body, answer.says_close) == (b"ok", True)


def test_stopping_server_answers_clients_in_the_accept_queue():
    """The kernel has accepted more connections than the server accepts in a turn."""
    holds, release = threading.Event(), threading.Event()

    def hold():
        holds.set()
        release.wait()

    with running() as server, ExitStack() as stack:
        server.front.loop.call_soon_threadsafe(hold)
        holds.wait()
        clients = [stack.enter_context(server.connect()) for _ in range(5 * ACCEPTED_AT_ONCE)]
        for client in clients:
            client.sendall(HELLO)
        server.begin_stop()
        release.set()
        assert [receive(client).body for client in clients] == [b"hello"] * len(clients)


@pytest.mark.parametrize("received", [None, 4096])
def test_response_pieces_are_joined_into_one_body(received):
    pieces = [b"[", memoryview(b"x" * 300_000), b"", *[b"%d," % number for number in range(3_000)]]
    pieces += [memoryview(bytearray(b"y" * 100_000))[:-1], b"]"]
    body = b"".join(map(bytes, pieces))
    sent = []

    def application(environment, start_response):
        sent.append(environment["treeclaim.takes_pieces"])
        start_response("200 OK", [("Content-Type", "text/plain")])
        return pieces

    with running(application) as server, server.connect(received) as client:
        # The second answer begins where the first ends.
        for _ in range(2):
            client.sendall(HELLO)
            answer = receive(client)
            assert answer.body == body
            assert int(answer.headers["content-length"]) == len(body)
    assert sent == [True, True]
