# SPDX-License-Identifier: Apache-2.0
"""TLS: answers of any size, and clients that never finish the handshake."""

import ssl
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from tests.server.fronts import HELLO, is_closed, receive, running
from tests.servers import eventually


@pytest.fixture(scope="module")
def contexts(openssl, tmp_path_factory):
    """The TLS contexts of a server and of a client."""
    folder = tmp_path_factory.mktemp("tls")
    names = ["-keyout", folder / "key.pem", "-out", folder / "certificate.pem"]
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", *names, *subject],
        check=True,
        capture_output=True,
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=folder / "certificate.pem")


@contextmanager
def connected_by_tls(server, contexts):
    """Open a TLS connection for a block."""
    with contexts[1].wrap_socket(server.connect(), server_hostname="localhost") as client:
        yield client


@pytest.mark.slow
def test_responses_of_any_size_arrive_over_tls(contexts):
    def sized(environment, start_response):
        start_response("200 OK", [])
        size = int(environment["QUERY_STRING"])
        whole = [b"x" * size]
        return iter(whole * 3) if environment["PATH_INFO"] == "/stream" else whole

    with running(sized, tls=contexts[0]) as server, connected_by_tls(server, contexts) as client:
        for size in (0, 1, 10_000, 3_000_000):
            for path, times in (("/", 1), ("/stream", 3)):
                client.sendall(f"GET {path}?{size} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                answer = receive(client)
                assert (len(answer.body), answer.says_close) == (size * times, False)


def test_oversized_body_is_answered_over_tls(contexts):
    with (
        running(tls=contexts[0], body_bytes=1000) as server,
        connected_by_tls(server, contexts) as client,
    ):
        client.sendall(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        client.sendall(b"x" * 100_000)
        assert receive(client).says_close


@pytest.mark.slow
def test_clients_without_handshake_do_not_block_others_and_are_closed(contexts):
    with (
        running(tls=contexts[0], connections=50, header_seconds=3.0) as server,
        ExitStack() as stack,
    ):
        silent = [stack.enter_context(server.connect()) for _ in range(200)]
        with connected_by_tls(server, contexts) as client:
            client.sendall(HELLO)
            assert receive(client).body == b"hello"
        assert all(is_closed(connection) for connection in silent)
        eventually(lambda: len(server.front.table) == 0, "all are forgotten")
