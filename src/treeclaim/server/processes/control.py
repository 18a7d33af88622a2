# SPDX-License-Identifier: Apache-2.0
"""The connection between the master and a generation: JSON messages over a pair of sockets.

| from | kind | members | meaning |
| --- | --- | --- | --- |
| generation | `checked` | `admin`: host and port, or empty | configuration, certificates and policy are valid |
| master | `serve` | `problems`: texts to log; listening sockets are attached | serve the sockets |
| generation | `ready` | `where`: URL; `is_alone`: whether the loader is the only worker | all processes answer |
| generation | `lost` | `why` | another process of an only worker has ended |
| generation | `refused` | `why` | the generation cannot serve, and ends |
| generation | `working` | | sent every second: a silent generation has stalled |
| master | `reload_refused` | `why` | the successor of the generation cannot serve |

A pipe from the master is the standard input of a generation. When the master closes it or ends, all processes of the
generation stop.
"""

import json
import os
import select
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from treeclaim.server.bounds import WORKING_SECONDS

_MOST_BYTES = 64 * 1024
_MOST_DESCRIPTORS = 2


class Control:
    """A non-blocking end of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setblocking(False)

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._socket.fileno()

    def send(self, kind: str, sockets: Sequence[socket.socket] = (), **members: Any) -> None:
        """Send a message; drop it if the other end is closed or does not read."""
        data = json.dumps({"kind": kind, **members}).encode()
        with suppress(OSError):
            socket.send_fds(self._socket, [data], [listener.fileno() for listener in sockets])

    def receive(self) -> tuple[Mapping[str, Any], Sequence[socket.socket]] | None:
        """Return the next message with its sockets, or None; raise ValueError if the message is invalid."""
        with suppress(OSError):
            data, descriptors, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, _MOST_DESCRIPTORS)
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            if data:
                message = json.loads(data)
                if not isinstance(message, dict) or "kind" not in message:
                    raise ValueError("not a message")
                return message, [socket.socket(fileno=number) for number in descriptors]
        return None

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def make_controls() -> tuple[Control, socket.socket]:
    """Return the master's end of a new connection, and the socket of the generation's end."""
    master_end, generation_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Control(master_end), generation_end


@contextmanager
def report_work(control: Control) -> Iterator[None]:
    """Send `working` during a block, and end this process when its standard input ends.

    The reporting thread ends with the block, so that the process can fork afterwards.
    """
    is_over, end = os.pipe()

    def report() -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(is_over, select.POLLIN)
        while not (events := poll.poll(WORKING_SECONDS * 1000)):
            control.send("working")
        if any(descriptor == 0 for descriptor, _ in events):
            os._exit(1)

    thread = threading.Thread(target=report, name="working")
    thread.start()
    try:
        yield
    finally:
        os.close(end)
        thread.join()
        os.close(is_over)
