# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that counts round trips, delays them, falls silent, or cuts connections."""

import multiprocessing
import select
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from urllib.parse import urlsplit, urlunsplit

_CHUNK = 1 << 18
_Pair = tuple[socket.socket, socket.socket]
"""The connections of a client to the proxy, and of the proxy to the server."""


class Proxy:
    """Forwards connections to the first of several ports that accepts them.

    Attributes:
        port: Where it listens.
        targets: The ports of the servers.
        delay: Seconds for which the messages of clients are held back.
        round_trips: How often a client has sent something after it had received something.
        is_refusing: Whether new connections are closed at once.
        cut_in: After how many more messages of clients the connection of the next is cut; None for never.
        is_heard: Whether the server still receives that message.
        silent_at: The beginning of the messages of clients that are counted; the last of them is not forwarded.
        silent_in: How many of them there are before the proxy falls silent; None for never.
    """

    def __init__(self, *targets: int, delay: float = 0.0) -> None:
        self.targets = targets
        self.delay = delay
        self.round_trips = 0
        self.is_refusing = False
        self.cut_in: int | None = None
        self.is_heard = False
        self.silent_at = b""
        self.silent_in: int | None = None
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._is_speaking = threading.Event()
        self._is_speaking.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, url: str) -> str:
        """Return the URL of a server with the port of the proxy."""
        parts = urlsplit(url)
        netloc = parts.netloc.replace(f":{parts.port}", f":{self.port}")
        return urlunsplit(parts._replace(netloc=netloc))

    def cut(self) -> int:
        """Cut all connections; return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _close(pair)
        return len(pairs)

    def fall_silent(self) -> None:
        """Forward nothing any more, as if the machine behind had lost its power; connections stay."""
        self._is_speaking.clear()

    @property
    def is_silent(self) -> bool:
        """Whether the proxy forwards nothing now."""
        return not self._is_speaking.is_set()

    def speak_again(self) -> None:
        """Forward the messages that have come meanwhile, and all later ones."""
        self._is_speaking.set()

    def close(self) -> None:
        """Accept no more connections, and cut those that are open; messages held back are lost."""
        self.is_refusing = True
        self._listener.close()
        self.cut()
        self._is_speaking.set()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            outer = None if self.is_refusing else self._connect()
            if outer is None:
                inner.close()
                continue
            for end in (inner, outer):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.add((inner, outer))
            threading.Thread(target=self._forward, args=((inner, outer),), daemon=True).start()

    def _connect(self) -> socket.socket | None:
        for target in self.targets:
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", target))
        return None

    def _forward(self, pair: _Pair) -> None:
        inner, outer = pair
        messages: deque[tuple[float, bytes]] = deque()
        has_received = True
        with selectors.DefaultSelector() as selector, suppress(OSError, ValueError):
            for end in pair:
                selector.register(end, selectors.EVENT_READ)
            while True:
                wait = max(messages[0][0] - time.perf_counter(), 0) if messages else None
                for key, _ in selector.select(wait):
                    if key.fileobj is inner:
                        data = inner.recv(_CHUNK)
                        messages.append((time.perf_counter() + self.delay, data))
                        with self._lock:
                            self.round_trips += has_received and data != b""
                        has_received = False
                        if not data:
                            selector.unregister(inner)
                    else:
                        data = outer.recv(_CHUNK)
                        has_received = True
                        self._is_speaking.wait()
                        if not data:
                            break
                        inner.sendall(data)
                else:
                    if self._send_due(messages, outer):
                        continue
                break
        with self._lock:
            self._pairs.discard(pair)
        _close(pair)

    def _send_due(self, messages: deque[tuple[float, bytes]], outer: socket.socket) -> bool:
        """Send the messages that are due; return whether the connection continues."""
        while messages and messages[0][0] <= time.perf_counter():
            _, data = messages.popleft()
            if not data:
                return False
            if self._begins_silence(data):
                self.fall_silent()
            self._is_speaking.wait()
            is_last = self._is_last()
            if is_last and not self.is_heard:
                return False
            outer.sendall(data)
            if is_last:
                # The server executes the message, and its response is lost. It may need more messages first.
                select.select([outer], [], [], 0.1)
                return False
        return True

    def _is_last(self) -> bool:
        """Return whether the connection is to be cut at this message of a client."""
        with self._lock:
            if self.cut_in is None:
                return False
            self.cut_in -= 1
            return self.cut_in == -1

    def _begins_silence(self, data: bytes) -> bool:
        """Return whether this message of a client, and all later ones, are to be held back."""
        with self._lock:
            if self.silent_in is None or not data.startswith(self.silent_at):
                return False
            self.silent_in -= 1
            return self.silent_in == 0


def _close(pair: _Pair) -> None:
    for end in pair:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


@contextmanager
def delayed(url: str, seconds: float) -> Iterator[str]:
    """Yield the URL of the same database with so many seconds more for each round trip.

    The proxy is a process of its own, so that it takes no time from the measuring process. A file of SQLite has no
    round trips, and stays as it is.
    """
    port = urlsplit(url).port
    if not seconds or port is None:
        yield url
        return
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(port, url, seconds, sender), daemon=True)
    process.start()
    try:
        yield receiver.recv()
    finally:
        process.terminate()
        process.join()


def _serve(target: int, url: str, seconds: float, sender: "Connection[str]") -> None:
    sender.send(Proxy(target, delay=seconds).url(url))
    threading.Event().wait()
