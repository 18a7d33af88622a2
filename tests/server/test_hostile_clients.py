# SPDX-License-Identifier: Apache-2.0
"""Clients that are silent, slow or do not read do not affect other clients."""

import contextlib
import select
import threading
from contextlib import ExitStack
from functools import partial

import pytest

from tests.server.fronts import HELLO, is_closed, receive, running
from tests.servers import eventually
from treeclaim.server.http.table import Phase
from treeclaim.server.processes.listening import allow_most_files

PIECE = b"x" * (64 * 1024)
SMALL = 4096
"""Bytes of the receive buffer of a client's kernel."""


class Streams:
    """An application with a streamed answer of a GiB at /stream, and a small one elsewhere.

    Attributes:
        pieces: An entry for each produced piece.
        begun, closed: An entry for each begun stream, and for each aborted or finished one.
    """

    def __init__(self):
        self.pieces, self.begun, self.closed = [], [], []

    def __call__(self, environment, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        return self._stream() if environment["PATH_INFO"] == "/stream" else [b"small"]

    def _stream(self):
        self.begun.append(1)
        try:
            for _ in range(16 * 1024):
                self.pieces.append(1)
                yield PIECE
        finally:
            self.closed.append(1)


def connections(stack, server, number, **options):
    """Open a number of connections until the stack is closed."""
    return [stack.enter_context(server.connect(**options)) for _ in range(number)]


def has_idle(front, number):
    """Return whether a number of connections are answered, and may send their next requests."""
    return front.table.count(Phase.IDLE) + len(front.answered_connections) == number


@pytest.mark.slow
def test_silent_connections_do_not_block_others_and_are_closed():
    allow_most_files()
    with running(header_seconds=4.0) as server, ExitStack() as stack:
        silent = connections(stack, server, 1300)
        eventually(lambda: len(server.front.table) >= 1300, "all are open")
        assert server.ask().body == b"hello"
        assert all(is_closed(client) for client in silent)
        eventually(lambda: len(server.front.table) == 0, "all are forgotten")


def test_silent_connections_are_evicted_before_kept_ones():
    with running(connections=40) as server, ExitStack() as stack:
        kept = connections(stack, server, 10)
        for client in kept:
            client.sendall(HELLO)
            assert receive(client).body == b"hello"
        connections(stack, server, 200)
        assert server.ask().body == b"hello"
        for client in kept:
            client.sendall(HELLO)
            assert receive(client).body == b"hello"
        assert len(server.front.table) <= 40


def test_longest_idle_kept_connection_is_evicted_for_a_new_client():
    with running(connections=10) as server, ExitStack() as stack:
        kept = connections(stack, server, 10)
        front = server.front
        for number, client in enumerate(kept, 1):
            client.sendall(HELLO)
            assert receive(client).body == b"hello"
            # The client may read the answer before the thread has noted it.
            eventually(partial(has_idle, front, number), "the answer was not noted")
        assert server.ask().body == b"hello"
        assert is_closed(kept[0])


@pytest.mark.slow
def test_slow_requests_hold_no_thread_and_time_out_with_408():
    body = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbegin"
    with (
        running(threads=1, header_seconds=2.0, body_seconds=2.0) as server,
        ExitStack() as stack,
    ):
        slow = connections(stack, server, 100)
        for number, client in enumerate(slow):
            client.sendall(body if number % 2 else HELLO[:20])
        assert server.ask().body == b"hello"
        for client in slow:
            with contextlib.suppress(OSError):
                client.sendall(b"x")
        for client in slow:
            answer = receive(client)
            assert (answer.status, answer.says_close) == (408, True)
            assert is_closed(client)


@pytest.mark.slow
def test_slow_bytes_do_not_extend_the_header_timeout():
    with running(header_seconds=1.0) as server, server.connect() as client:
        client.settimeout(0.1)
        for _ in range(600):
            with contextlib.suppress(OSError):
                client.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                assert client.recv(12) == b"HTTP/1.1 408"
                return
        raise AssertionError("it was never refused")


@pytest.mark.slow
def test_clients_that_do_not_read_hold_no_thread_and_little_memory_and_are_dropped():
    streams = Streams()
    with (
        running(streams, threads=2, answer_seconds=4.0) as server,
        ExitStack() as stack,
    ):
        clients = connections(stack, server, 40, received=SMALL)
        for client in clients:
            client.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        eventually(lambda: len(streams.begun) == 40, "all have begun")
        for _ in range(20):
            assert server.ask().body == b"small"
        # The kernel buffers a few MiB for each client; the remainder of the GiB is never produced.
        assert len(streams.pieces) * len(PIECE) < 40 * 16 * 1024 * 1024
        eventually(lambda: len(streams.closed) == 40, "all are given up")
        assert server.front.table.total == 0


@pytest.mark.slow
def test_slow_but_steady_reader_gets_the_whole_response():
    size = 8 * 1024 * 1024

    def large(_environment, start_response):
        start_response("200 OK", [("Content-Length", str(size))])
        return [b"y" * size]

    with running(large, answer_seconds=2.0) as server, server.connect(received=SMALL) as client:
        client.sendall(HELLO)
        received_bytes = 0
        pause = threading.Event()
        while received_bytes < size:
            # The pauses alone exceed one deadline.
            if received_bytes < SMALL * 256:
                pause.wait(0.01)
            data = client.recv(SMALL)
            assert data, received_bytes
            received_bytes += len(data)


@pytest.mark.slow
def test_partial_bodies_share_a_budget_and_the_oldest_is_dropped():
    megabyte = 1024 * 1024
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (64 * megabyte)
    with running(body_bytes=64 * megabyte) as server, ExitStack() as stack:
        clients = connections(stack, server, 6)
        for client in clients:
            client.sendall(head)
            client.sendall(b"x" * (60 * megabyte))
        answer = receive(clients[0])
        assert (answer.status, answer.says_close) == (408, True)
        assert server.ask().body == b"hello"
        assert server.front.table.total <= 256 * megabyte


def test_requests_beyond_the_queue_are_refused_with_retry_after():
    release = threading.Event()

    def slow(_environment, start_response):
        release.wait()
        start_response("204 No Content", [])
        return []

    with running(slow, threads=1, waiting=2) as server, ExitStack() as stack:
        clients = connections(stack, server, 8)
        for client in clients:
            client.sendall(HELLO)
        table = server.front.table
        eventually(
            lambda: table.count(Phase.ANSWERING) + table.count(Phase.IDLE) == 8, "all were read"
        )
        release.set()
        statuses = []
        for client in clients:
            answer = receive(client)
            statuses.append(answer.status)
            if answer.status == 503:
                assert answer.headers["retry-after"] == "1"
                assert not answer.says_close
                client.sendall(HELLO)
                assert receive(client).status == 204
        assert statuses.count(503) in {5, 6}


@pytest.mark.slow
def test_pipelined_requests_beyond_the_buffer_are_answered():
    with running() as server, server.connect() as client:
        client.setblocking(False)
        unsent, data = memoryview(HELLO * 2_000), bytearray()
        while data.count(b"hello", -10) == 0 or data.count(b"HTTP/1.1 200") < 2_000:
            # A client that polls would take the interpreter lock from the server.
            select.select([client], [client] if unsent else [], [])
            with contextlib.suppress(BlockingIOError):
                unsent = unsent[client.send(unsent) :] if unsent else unsent
            with contextlib.suppress(BlockingIOError):
                data += client.recv(1 << 20)
        assert data.count(b"hello") == 2_000
