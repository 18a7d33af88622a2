# SPDX-License-Identifier: Apache-2.0
"""The connections of a process: their phases and deadlines, and the bounds of their number and bytes.

Counted are received bytes, requests that wait or are worked on, unsent answers and the state of watches.
Each connection may hold `SMALL_BYTES` at any time. Beyond that the bound of all applies: the connections
that have had an unfinished request or an unread answer for longest are evicted, as long as such
connections hold more than half. Requests that are worked on are never evicted; other connections wait.
"""

import logging
import threading
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from treeclaim.server.bounds import ROOM_SECONDS, SMALL_BYTES

if TYPE_CHECKING:
    from treeclaim.server.http.connection import HttpConnection

_LOG = logging.getLogger(__name__)


class Phase(Enum):
    """States of a connection."""

    OPENING = auto()
    """TLS is negotiated, or nothing has been received."""

    READING = auto()
    """The head of a request arrives."""

    RECEIVING = auto()
    """The body of a request arrives."""

    ANSWERING = auto()
    """A request waits for a thread, or a thread works on it."""

    WATCHING = auto()
    """Events are sent as they occur; the client has read all of them so far."""

    SENDING = auto()
    """The client has not read all of the answer so far."""

    IDLE = auto()
    """An answer was read; the connection is kept."""

    LINGERING = auto()
    """The last answer was read; the connection is read from until the client closes it."""


_CLOSED_FIRST = (
    *(Phase.OPENING, Phase.LINGERING, Phase.READING, Phase.RECEIVING, Phase.IDLE),
    Phase.SENDING,
)
"""Order in which connections are closed when there are too many: the cheapest for a client first.
Connections that are answered, or watch, are never closed."""

_EVICTABLE = (Phase.READING, Phase.RECEIVING, Phase.SENDING)
"""Phases with an unfinished request or an unread answer."""


class ConnectionTable:
    """The open connections, those of each phase in the order in which they entered it, and their bytes.

    Any thread may call `add_bytes`; the event loop calls the other methods.

    Attributes:
        total: Bytes that all connections hold now.
        most_bytes: Total up to which a connection may hold more than `SMALL_BYTES`.
        waiting: Connections that wait for room for their bytes, with the time since when.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        """Bound the number of connections and their bytes."""
        self.total = 0
        self.most_bytes = most_bytes
        self.waiting: dict[HttpConnection, float] = {}
        self._most = most
        self._lock = threading.Lock()
        self._moves = 0
        self._phases: dict[Phase, dict[HttpConnection, None]] = {phase: {} for phase in Phase}

    def __len__(self) -> int:
        """Return how many are open."""
        return sum(len(members) for members in self._phases.values())

    def __iter__(self) -> "Iterator[HttpConnection]":
        """Return all that are open now."""
        return iter([member for members in self._phases.values() for member in members])

    def count(self, phase: Phase) -> int:
        """Return how many are in a phase."""
        return len(self._phases[phase])

    def move(self, member: "HttpConnection", phase: Phase) -> None:
        """Add a connection, or move it to another phase."""
        self._phases[member.phase].pop(member, None)
        member.phase = phase
        self._moves += 1
        member.entered = self._moves
        self._phases[phase][member] = None

    def remove(self, member: "HttpConnection") -> None:
        """Remove a connection that is closed."""
        self._phases[member.phase].pop(member, None)

    # Number and deadlines.

    def make_room(self) -> bool:
        """Close a connection if there are too many; return whether there is room."""
        return len(self) < self._most or self.drop_cheapest()

    def drop_cheapest(self) -> bool:
        """Close the connection that costs a client least; return whether there was such."""
        for phase in _CLOSED_FIRST:
            for member in self._phases[phase]:
                member.drop()
                return True
        return False

    def sweep(self, now: float) -> None:
        """Let late connections act, and refuse those that have waited for room for too long."""
        for member in [member for member in self if now >= member.deadline]:
            try:
                member.expire()
            except Exception:  # noqa: BLE001 - the deadlines of all others have to be checked
                _LOG.exception("Dropped a connection")
                member.drop()
        self.wake()
        for member, since in list(self.waiting.items()):
            if now - since >= ROOM_SECONDS:
                del self.waiting[member]
                member.evict()

    # Bytes.

    def add_bytes(self, member: "HttpConnection", change: int) -> None:
        """Count more bytes of a connection, or fewer."""
        with self._lock:
            member.held += change
            self.total += change

    def room_of(self, member: "HttpConnection") -> int:
        """Return how many bytes more a connection may hold, after evicting other ones."""
        while not (room := self._room_of(member)) and self._may_evict():
            if not self._evict_oldest(member):
                break
        return room

    def _room_of(self, member: "HttpConnection") -> int:
        return max(SMALL_BYTES - member.held, self.most_bytes - self.total, 0)

    def enforce(self, exempt: "HttpConnection") -> None:
        """Evict other connections than one until the bound holds."""
        while self.total > self.most_bytes and self._evict_oldest(exempt):
            pass

    def wake(self) -> None:
        """Let connections that wait read on while there is room."""
        for member in list(self.waiting):
            if self.total >= self.most_bytes:
                return
            self.waiting.pop(member, None)
            member.read_on()

    def _may_evict(self) -> bool:
        evictable = sum(member.held for phase in _EVICTABLE for member in self._phases[phase])
        return evictable * 2 > self.most_bytes

    def _evict_oldest(self, exempt: "HttpConnection") -> bool:
        members = (
            member
            for phase in _EVICTABLE
            for member in self._phases[phase]
            if member.held > SMALL_BYTES and member is not exempt
        )
        oldest = min(members, key=lambda member: member.entered, default=None)
        if oldest is not None:
            oldest.evict()
        return oldest is not None
