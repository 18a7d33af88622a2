# SPDX-License-Identifier: Apache-2.0
"""The event loop and its threads survive what comes while a server ends."""

import subprocess
import sys
import threading

from tests.server.fronts import CLIENT_SECONDS, HELLO, hello, running
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
    """A signal to a group of processes arrives twice: from the first process, and directly."""
    result = subprocess.run(
        [sys.executable, "-c", A_SIGNAL_WHILE_CLOSING], capture_output=True, timeout=60, check=True
    )
    assert result.stderr == b""


def test_thread_survives_a_response_after_the_server_has_ended(monkeypatch):
    """The answer of the abandoned job is dropped, and the next job finds the thread."""
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
