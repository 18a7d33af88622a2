# SPDX-License-Identifier: Apache-2.0
"""Servers from which nothing comes: real sockets, as those of a process that hangs and of a host that is off."""

import socket
import threading
from contextlib import ExitStack, contextmanager


@contextmanager
def never_answering():
    """Accept connections and read everything without an answer; yields the address and the connections."""
    connections = []
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=256))

        def take():
            # It ends when the listener is shut down.
            while True:
                try:
                    connections.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", connections
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


@contextmanager
def not_there():
    """Drop packets to an address: the kernel does so while as many wait as may; yields it."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"
