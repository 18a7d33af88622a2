# SPDX-License-Identifier: Apache-2.0
"""What the first process and a loader say to each other: messages over a pair of sockets.

The loader begins with `Checked` or `Refused`. Then the first process gives orders, one at a time, and
gets one answer to each: `Loaded` or `Forked`. Until then it is told now and then that the loader is
`Working`: one that says nothing has stalled. File descriptors travel with an order. The end of the
connection is the end of either side.
"""

import json
import os
import select
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from treeclaim.server.bounds import WORKING_SECONDS

MOST_BYTES = 64 * 1024
"""Longest message: that with all options of logging takes a few KB."""

_MOST_DESCRIPTORS = 2


class Role(StrEnum):
    """What a forked process is to be; the words are the names of the processes."""

    WORKER = "treeclaim-work"
    ADMIN = "treeclaim-admin"


@dataclass(frozen=True, slots=True)
class Load:
    """Order: load the inventory, if that is not done."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Order: fork a process.

    It is given its listening socket, and its end of a connection to the first process (`heartbeat.py`).
    """

    role: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The configuration and the database can be used.

    Attributes:
        program: What log lines call the program.
        log_options: The operator's options of logging, by name.
        admin: Host and port of the admin listener; empty if none is wanted.
        expiries: When certificates expire: the attributes of each `Expiry`.
    """

    program: str
    log_options: Mapping[str, Any]
    admin: Sequence[Any]
    expiries: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """They cannot; the loader ends."""

    why: str


@dataclass(frozen=True, slots=True)
class Working:
    """What was ordered is under way; more will be said."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The loader can fork workers.

    Attributes:
        has_inventory: Whether the inventory is loaded; else each worker tries that by itself.
    """

    has_inventory: bool = True


@dataclass(frozen=True, slots=True)
class Forked:
    """A process was forked; its parent is the first process."""

    pid: int


Message = Load | Fork | Checked | Refused | Working | Loaded | Forked

_KINDS: Mapping[str, type[Message]] = {
    kind.__name__: kind for kind in (Load, Fork, Checked, Refused, Working, Loaded, Forked)
}


def packed(message: Message) -> bytes:
    """Return a message as bytes."""
    return json.dumps([type(message).__name__, asdict(message)]).encode()


def unpacked(data: bytes) -> Message:
    """Return the message that bytes are, without what this release does not know of it.

    After an upgrade, a first process of the previous release reloads, and meets a loader of the new one.

    Raises:
        ValueError: if it is a message that this release does not know, or lacks what it needs.
    """
    kind, content = json.loads(data)
    known = _KINDS.get(kind)
    if known is None:
        raise ValueError(f"{kind!r} is not a message")
    names = {field.name for field in fields(known)}
    try:
        return known(**{name: value for name, value in content.items() if name in names})
    except TypeError as error:
        raise ValueError(str(error)) from error


def connected_sockets() -> tuple[socket.socket, socket.socket]:
    """Return a pair of sockets that keep messages apart."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class LoadersEnd:
    """The loader's end of the connection."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)

    def tell(self, message: Message) -> None:
        """Send a message; if the first process is gone, nothing."""
        try:
            self._socket.send(packed(message))
        except OSError:
            # The next order does not come; that ends the loader.
            return

    def next_order(self) -> tuple[Message, Sequence[int]] | None:
        """Wait for an order; return it with its file descriptors, None if no more comes."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, MOST_BYTES, _MOST_DESCRIPTORS)
        except ConnectionError:
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return (unpacked(data), descriptors) if data else None

    def close(self) -> None:
        """Close it, in a process that is not the loader."""
        self._socket.close()


@contextmanager
def saying_that_it_works(orders: LoadersEnd) -> Iterator[None]:
    """Say in this block that this process works, and end at once when the first process is gone.

    The first process holds the other end of the standard input, and never writes. The thread that
    looks at it is gone at the end of the block.
    """
    over, end = os.pipe()

    def watch() -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(over, select.POLLIN)
        while not (events := poll.poll(WORKING_SECONDS * 1000)):
            orders.tell(Working())
        if any(descriptor == 0 for descriptor, _ in events):
            os._exit(1)

    thread = threading.Thread(target=watch, name="first process")
    thread.start()
    try:
        yield
    finally:
        os.close(end)
        thread.join()
        os.close(over)
