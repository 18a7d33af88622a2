# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy whose connections can be cut, as a firewall or a broken switch does.

Or they fall silent, as if the machine behind had lost its power: nothing is cut, nothing comes.
"""

import contextlib
import selectors
import socket
import threading


class Proxy:
    """Passes bytes between a port of its own and the first of some others that can be reached."""

    def __init__(self, *targets):
        self.targets = targets
        self._lock = threading.Lock()
        self._pairs = set()
        self.refusing = False
        self._passing = threading.Event()
        self._passing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Cut all connections; return how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _close(pair)
        return len(pairs)

    def fall_silent(self):
        """Pass nothing on any more; connections stay, and new ones are taken."""
        self._passing.clear()

    def speak_again(self):
        """Pass what has come meanwhile, and all that comes."""
        self._passing.set()

    def close(self):
        """Take no more connections, and cut those that are there."""
        self.refusing = True
        self._passing.set()
        self._listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            if self.refusing:
                inner.close()
                continue
            outer = self._reached()
            if outer is None:
                inner.close()
                continue
            pair = (inner, outer)
            with self._lock:
                self._pairs.add(pair)
            threading.Thread(target=self._pass, args=(pair,), daemon=True).start()

    def _reached(self):
        for target in self.targets:
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", target))
        return None

    def _pass(self, pair):
        inner, outer = pair
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(inner, selectors.EVENT_READ, outer)
            selector.register(outer, selectors.EVENT_READ, inner)
            while self._pass_once(selector):
                pass
        with self._lock:
            self._pairs.discard(pair)
        _close(pair)

    def _pass_once(self, selector):
        for key, _ in selector.select():
            data = key.fileobj.recv(65536)
            if not data:
                return False
            self._passing.wait()
            key.data.sendall(data)
        return True


def _close(pair):
    for one in pair:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
