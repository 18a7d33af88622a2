# SPDX-License-Identifier: Apache-2.0
"""A database that is not on the same machine: each round trip to it takes longer.

A cloud's database is some switches away. The proxy here, a process of its own, holds back what a
service sends to its database; so a statement that waits for an answer takes that much longer, and
statements that are sent together do not.
"""

import multiprocessing
import queue
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.sharedctypes import SynchronizedArray
from urllib.parse import urlsplit, urlunsplit

from tests.ports import free_port

_CHUNK = 1 << 18
_LISTEN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes that have passed through a proxy.

    Attributes:
        round_trips: How often something was sent after something else was received.
        sent: Bytes to the database.
        received: Bytes from it.
    """

    round_trips: int
    sent: int
    received: int

    def since(self, before: "Traffic") -> "Traffic":
        return Traffic(
            self.round_trips - before.round_trips,
            self.sent - before.sent,
            self.received - before.received,
        )


@dataclass(frozen=True, slots=True)
class Watched:
    """A database behind a proxy.

    Attributes:
        url: Where it is.
        counters: Counters of the proxy; see `traffic`.
    """

    url: str
    counters: "SynchronizedArray[int] | None" = None

    def traffic(self) -> Traffic:
        """Return what has passed so far; nothing where there is no proxy."""
        return Traffic(0, 0, 0) if self.counters is None else Traffic(*self.counters[:])


@contextmanager
def delayed(url: str, seconds: float) -> Iterator[str]:
    """Yield the URL of the same database with so many seconds more for each round trip.

    A file of SQLite has no round trips, and stays as it is.
    """
    if not seconds:
        yield url
        return
    with watched(url, seconds) as database:
        yield database.url


@contextmanager
def watched(url: str, seconds: float = 0.0) -> Iterator[Watched]:
    """Yield the same database behind a proxy that counts; see `delayed`."""
    parts = urlsplit(url)
    if parts.port is None:
        yield Watched(url)
        return
    port = free_port()
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", 3)
    process = context.Process(
        target=_serve, args=(port, parts.port, seconds, counters), daemon=True
    )
    process.start()
    try:
        _wait_for(port)
        place = parts.netloc.replace(f":{parts.port}", f":{port}")
        yield Watched(urlunsplit(parts._replace(netloc=place)), counters)
    finally:
        process.terminate()
        process.join()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _LISTEN_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


class _Counter:
    """Counts what passes on one connection."""

    def __init__(self, counters: "SynchronizedArray[int]") -> None:
        self._counters = counters
        self._has_received = True

    def sent(self, count: int) -> None:
        with self._counters.get_lock():
            self._counters[0] += self._has_received
            self._counters[1] += count
        self._has_received = False

    def received(self, count: int) -> None:
        self._has_received = True
        with self._counters.get_lock():
            self._counters[2] += count


def _serve(port: int, target: int, seconds: float, counters: "SynchronizedArray[int]") -> None:
    with socket.create_server(("127.0.0.1", port)) as listener:
        while True:
            inner, _ = listener.accept()
            outer = socket.create_connection(("127.0.0.1", target))
            for one in (inner, outer):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            counter = _Counter(counters)
            held: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
            for work, args in (
                (_hold, (inner, held, seconds, counter)),
                (_let_go, (held, outer)),
                (_pass, (outer, inner, counter)),
            ):
                threading.Thread(target=work, args=args, daemon=True).start()


def _hold(
    source: socket.socket,
    held: "queue.SimpleQueue[tuple[float, bytes]]",
    seconds: float,
    counter: _Counter,
) -> None:
    data = b"-"
    while data:
        try:
            data = source.recv(_CHUNK)
        except OSError:
            data = b""
        if data:
            counter.sent(len(data))
        held.put((time.perf_counter() + seconds, data))


def _let_go(held: "queue.SimpleQueue[tuple[float, bytes]]", target: socket.socket) -> None:
    while True:
        due, data = held.get()
        if not data:
            return _close(target)
        time.sleep(max(due - time.perf_counter(), 0))
        with suppress(OSError):
            target.sendall(data)


def _pass(source: socket.socket, target: socket.socket, counter: _Counter) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            counter.received(len(data))
            target.sendall(data)
    _close(target)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
