# SPDX-License-Identifier: Apache-2.0
"""The benchmark's client times requests, not the making of connections."""

import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.clients import connection as connection_module
from bench.clients.connection import Connection


class CountingServer(ThreadingHTTPServer):
    """A server that notes from which ports it was asked."""

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.ports = []


@pytest.fixture
def server():
    """A server of four bytes, which it may send before it closes the connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            counting.ports.append(self.client_address[1])
            self.send_response(200)
            self.send_header("Content-Length", "4")
            if self.path == "/close":
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"body")

        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_arguments):
            pass

    with CountingServer(Handler) as counting:
        threading.Thread(target=counting.serve_forever).start()
        yield counting
        counting.shutdown()


@pytest.fixture
def connection(server):
    with closing(Connection(f"http://127.0.0.1:{server.server_port}", {}, 10)) as connection:
        yield connection


def test_connection_is_reused(connection, server):
    assert [connection.get("/") for _ in range(3)] == [(200, b"body")] * 3
    assert len(set(server.ports)) == 1


def test_a_connection_that_the_server_closes_is_replaced(connection, server):
    assert [connection.get("/close") for _ in range(3)] == [(200, b"body")] * 3
    assert len(set(server.ports)) == 3


@pytest.mark.parametrize(("idle_seconds", "connections"), [(60.0, 1), (-1.0, 3)])
def test_write_uses_no_connection_that_may_be_closed(
    connection, server, monkeypatch, idle_seconds, connections
):
    monkeypatch.setattr(connection_module, "_IDLE_SECONDS", idle_seconds)
    assert [connection.put("/", b"{}") for _ in range(3)] == [(200, b"body")] * 3
    assert len(set(server.ports)) == connections
