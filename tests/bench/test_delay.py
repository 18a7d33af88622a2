# SPDX-License-Identifier: Apache-2.0
"""A delayed database answers later by one delay for each round trip, not for each statement."""

import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from tests.delay import delayed

DELAY = 1.0


def echo(listener):
    """Send back what comes, on one connection after the other."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            while data := connection.recv(1000):
                connection.sendall(data)


@pytest.mark.slow
def test_pipelined_messages_are_delayed_once():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        url = f"postgresql+psycopg://bench@127.0.0.1:{listener.getsockname()[1]}/some?x=1"
        with delayed(url, DELAY) as further:
            parts = urlsplit(further)
            assert (parts.path, parts.query, parts.username) == ("/some", "x=1", "bench")
            with socket.create_connection((parts.hostname, parts.port)) as client:
                start = time.perf_counter()
                client.sendall(b"one")
                assert client.recv(3) == b"one"
                once = time.perf_counter() - start
                client.sendall(b"two")
                client.sendall(b"six")
                start = time.perf_counter()
                answer = b""
                while len(answer) < 6:
                    answer += client.recv(6)
                together = time.perf_counter() - start
    assert answer == b"twosix"
    assert once >= DELAY
    assert DELAY * 0.9 <= together < DELAY * 1.9


def test_sqlite_is_not_delayed():
    with delayed("sqlite:///some.db", DELAY) as url:
        assert url == "sqlite:///some.db"
