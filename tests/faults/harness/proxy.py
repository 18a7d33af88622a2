# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy whose connections can be cut, as a firewall or a broken switch does.

Or they fall silent, as if the machine behind had lost its power: nothing is cut, nothing comes.
"""

import contextlib
import select
import selectors
import socket
import threading


class Proxy:
    """Passes bytes between a port of its own and the first of some others that can be reached.

    Attributes:
        cut_in: After how many more messages of clients the line of the next is cut; None for never.
        is_heard: Whether the server still gets that message.
        silent_at: How the messages of clients begin that are counted; the last of them is not passed on.
        silent_in: How many of them there are before it falls silent; None for never.
    """

    def __init__(self, *targets):
        self.targets = targets
        self.cut_in = None
        self.is_heard = False
        self.silent_at = b""
        self.silent_in = None
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

    @property
    def is_silent(self):
        """Whether the proxy passes nothing on now."""
        return not self._passing.is_set()

    def speak_again(self):
        """Pass what has come meanwhile, and all that comes."""
        self._passing.set()

    def close(self):
        """Take no more connections, and cut those that are there; what was kept back is lost."""
        self.refusing = True
        self._listener.close()
        self.cut()
        self._passing.set()

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
            while self._pass_once(selector, inner):
                pass
        with self._lock:
            self._pairs.discard(pair)
        _close(pair)

    def _pass_once(self, selector, inner):
        for key, _ in selector.select():
            data = key.fileobj.recv(65536)
            if not data:
                return False
            if key.fileobj is inner and self._is_where_silence_begins(data):
                self.fall_silent()
            self._passing.wait()
            is_last = key.fileobj is inner and self._is_the_last()
            if is_last and not self.is_heard:
                return False
            key.data.sendall(data)
            if is_last:
                # The server has done what it was told, and says so to nobody. It may still have to
                # be told more before it answers.
                select.select([key.data], [], [], 0.1)
                return False
        return True

    def _is_the_last(self):
        """Return whether the connection is to be cut at this message of a client."""
        with self._lock:
            if self.cut_in is None:
                return False
            self.cut_in -= 1
            return self.cut_in == -1

    def _is_where_silence_begins(self, data):
        """Return whether this message of a client, and all later ones, are to be held back."""
        with self._lock:
            if self.silent_in is None or not data.startswith(self.silent_at):
                return False
            self.silent_in -= 1
            return self.silent_in == 0


def _close(pair):
    for one in pair:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
