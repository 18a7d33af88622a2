# SPDX-License-Identifier: Apache-2.0
"""Many watchers on one worker: each hears of each write, and nobody else has to wait for them."""

import selectors
import time

import pytest

from tests.api.resources.extension.clouds import EXTENDED
from tests.api.resources.extension.watchers import EVENTS, PATH, SECONDS, place_on
from tests.service import HEADERS

MANY = 600
"""Watchers; the server runs four threads."""


def request_for(**parameters):
    """The bytes that ask for a stream."""
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    lines = [f"{name}: {value}" for name, value in (HEADERS | EXTENDED | EVENTS).items()]
    return "\r\n".join([f"GET {PATH}?{query} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def hear(sockets, wanted):
    """Read from all until each has what is wanted."""
    heard = dict.fromkeys(sockets, b"")
    deadline = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as selector:
        for socket in sockets:
            selector.register(socket, selectors.EVENT_READ, socket)
        while selector.get_map():
            assert time.monotonic() < deadline, f"{len(selector.get_map())} heard nothing"
            for key, _ in selector.select(1):
                client = key.data
                data = client.recv(65536)
                assert data
                heard[client] += data
                if wanted in heard[client]:
                    selector.unregister(client)
    return heard


def watch_with(place, count):
    """Have so many watch, some one tree; writes reach them all, and searches are answered."""
    host = place.add("host")
    place.stock(host)
    sockets = [place.server.connect() for _ in range(count)]
    try:
        for number, one in enumerate(sockets):
            one.sendall(request_for(**({"in_tree": host} if number % 2 else {})))
        hear(sockets, b"event: changes")
        assert place.watching() == count
        for generation in (2, 3, 4):
            place.stock(host, total=generation)
            answer = place.http.get("/allocation_candidates", params={"resources": "VCPU:1"})
            assert answer.status_code == 200
            hear(sockets, b'"generation":%d' % generation)
    finally:
        for one in sockets:
            one.close()
    place.until_watching(0)


@pytest.mark.slow
def test_hundreds_of_watchers_get_each_write(tmp_path):
    with place_on("sqlite", tmp_path) as place:
        watch_with(place, MANY)
