# SPDX-License-Identifier: Apache-2.0
"""How long nobody is answered is noted, and how much of that the worker computed."""

import os
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bench.measuring.stops import noted

SECONDS = 0.1


def compute():
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        pass


def wait():
    threading.Event().wait(SECONDS)


class Gate:
    """Lets requests through, unless somebody holds it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.is_kept = threading.Event()

    def go_through(self):
        if not self.lock.acquire(blocking=False):
            self.is_kept.set()
            self.lock.acquire()
        self.lock.release()

    def __enter__(self):
        """Hold it from a moment at which a request waits."""
        self.lock.acquire()
        assert self.is_kept.wait(60)

    def __exit__(self, *_):
        self.lock.release()


@contextmanager
def answering(gate):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            gate.go_through()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.parametrize(("act", "computes"), [(compute, True), (wait, False)])
def test_a_stop_is_as_long_as_who_asks_waits_and_tells_whether_the_worker_computed(act, computes):
    gate = Gate()
    with answering(gate) as url, noted(url, os.getpid()) as take:
        with gate:
            act()
        found = take()
        assert found.wait_ms >= 1000 * SECONDS * 0.9
        assert (found.cpu_ms >= 1000 * SECONDS * 0.9) is computes
