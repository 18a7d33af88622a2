# SPDX-License-Identifier: Apache-2.0
"""The event loop and its threads survive late events while a server stops."""

import socket
import struct
import subprocess
import sys
import threading

from tests.server.fronts import CLIENT_SECONDS, HELLO, hello, receive, running
from tests.servers import eventually
from treeclaim.server.http import listener

A_SIGNAL_WHILE_CLOSING = """
import os, signal
from selectors import DefaultSelector
from treeclaim.server.http.loop import ServerLoop
close = DefaultSelector.close
def close_late(self):
    os.kill(os.getpid(), signal.SIGTERM)
    close(self)
DefaultSelector.close = close_late
loop = ServerLoop()
loop.add_signal_handler(signal.SIGTERM, print)
loop.close()
"""


def test_signal_during_loop_close_is_not_an_error():
    """A process group gets a signal twice: from the master, and directly."""
    result = subprocess.run(
        [sys.executable, "-c", A_SIGNAL_WHILE_CLOSING], capture_output=True, timeout=60, check=True
    )
    assert result.stderr == b""


def test_thread_survives_a_response_after_the_server_has_ended(monkeypatch):
    """The answer of the abandoned job is dropped, and the thread runs the next job."""
    monkeypatch.setattr(listener, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(listener, "ARRIVAL_SECONDS", 0.0)
    working, is_over, done = threading.Event(), threading.Event(), threading.Event()

    def slow(environment, start_response):
        working.set()
        assert is_over.wait(CLIENT_SECONDS)
        return hello(environment, start_response)

    with running(slow, threads=1) as server, server.connect() as client:
        client.sendall(HELLO)
        assert working.wait(CLIENT_SECONDS)
        pool = server.front.pool
    is_over.set()
    pool.offer(done.set)
    assert done.wait(CLIENT_SECONDS)


def test_reset_after_a_response_is_no_error(caplog):
    """The thread has sent all when the client, with a byte unread, resets the connection."""
    begun, may_answer = threading.Event(), threading.Event()
    holds, may_go_on = threading.Event(), threading.Event()

    def slow(environment, start_response):
        begun.set()
        assert may_answer.wait(CLIENT_SECONDS)
        return hello(environment, start_response)

    def hold_loop():
        holds.set()
        assert may_go_on.wait(CLIENT_SECONDS)

    with running(slow) as server:
        client = server.connect()
        client.sendall(HELLO.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n!"))
        assert begun.wait(CLIENT_SECONDS)
        server.front.loop.call_soon_threadsafe(hold_loop)
        assert holds.wait(CLIENT_SECONDS)
        may_answer.set()
        assert receive(client).body == b"hello"
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        eventually(lambda: server.front.answered_connections, "the thread has noted its answer")
        may_go_on.set()
        eventually(lambda: len(server.front.table) == 0, "the connection is forgotten")
    assert "Traceback" not in caplog.text
