# SPDX-License-Identifier: Apache-2.0
"""The connections of a process: their phases and deadlines, and the bounds of their number and bytes.

A request that exceeds `SMALL_BYTES` reserves room for its greatest possible length until its answer is complete. The
table counts reservations and unread answers. Above the bound, it evicts connections with an incomplete request or an
unread answer, the oldest first, as long as they hold more than half of the bound together. Running requests are never
evicted; other connections wait.
"""

import logging
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from treeclaim.server.bounds import ROOM_SECONDS

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
    """A request waits for a thread, or runs in a thread."""
    WATCHING = auto()
    """The client has read all events so far."""
    SENDING = auto()
    """The client has not read all bytes so far."""
    IDLE = auto()
    """The client has read the answer, and may send another request."""
    LINGERING = auto()
    """The client has read the last answer; received bytes are dropped until the client closes the connection."""


_CLOSED_FIRST = (
    *(Phase.OPENING, Phase.LINGERING, Phase.READING, Phase.RECEIVING, Phase.IDLE),
    Phase.SENDING,
)
"""Order in which excess connections are closed, the cheapest for clients first. Connections with a running request or a
watch are never closed."""

_EVICTABLE = (Phase.READING, Phase.RECEIVING, Phase.SENDING)
"""Phases with an incomplete request or an unread answer."""


class ConnectionTable:
    """The open connections, by phase and in the order in which they entered it, and their bytes.

    Attributes:
        total: Bytes that all connections hold.
        most_bytes: Bound of `total`.
        waiting_connections: Connections that wait for room, with the start of the wait.
    """

    def __init__(self, most_connections: int, most_bytes: int) -> None:
        self.total = 0
        self.most_bytes = most_bytes
        self.waiting_connections: dict[HttpConnection, float] = {}
        self._most_connections = most_connections
        self._moves = 0
        self._phases: dict[Phase, dict[HttpConnection, None]] = {phase: {} for phase in Phase}

    def __len__(self) -> int:
        """Return the number of open connections."""
        return sum(len(members) for members in self._phases.values())

    def __iter__(self) -> "Iterator[HttpConnection]":
        """Iterate over a snapshot of the open connections."""
        return iter([member for members in self._phases.values() for member in members])

    def count(self, phase: Phase) -> int:
        """Return the number of connections in a phase."""
        return len(self._phases[phase])

    def move(self, member: "HttpConnection", phase: Phase) -> None:
        """Add a connection, or move it to another phase."""
        self._phases[member.phase].pop(member, None)
        member.phase = phase
        self._moves += 1
        member.entry_number = self._moves
        self._phases[phase][member] = None

    def remove(self, member: "HttpConnection") -> None:
        """Remove a closed connection."""
        self._phases[member.phase].pop(member, None)
        self.waiting_connections.pop(member, None)

    def make_room(self) -> bool:
        """Close a connection if the table is full; return whether there is room for another one."""
        return len(self) < self._most_connections or self.drop_cheapest()

    def drop_cheapest(self) -> bool:
        """Close the connection that is cheapest for its client; return False if none may be closed."""
        member = next((member for phase in _CLOSED_FIRST for member in self._phases[phase]), None)
        if member is not None:
            member.drop()
        return member is not None

    def sweep(self, now: float) -> None:
        """Expire overdue connections, and evict those that have waited for room for `ROOM_SECONDS`."""
        for member in [member for member in self if now >= member.deadline]:
            try:
                member.expire()
            except Exception:  # noqa: BLE001 - the deadlines of all others must be checked
                _LOG.exception("Dropped a connection")
                member.drop()
        self.resume_waiting()
        for member, since in list(self.waiting_connections.items()):
            if now - since >= ROOM_SECONDS:
                member.evict()

    def set_held_bytes(self, member: "HttpConnection", held_bytes: int) -> None:
        """Record how many bytes a connection holds."""
        self.total += held_bytes - member.held_bytes
        member.held_bytes = held_bytes

    def reserve(self, member: "HttpConnection", amount: int) -> bool:
        """Reserve bytes for a connection; evict others if necessary. Return whether there is room."""
        while self.total + amount > self.most_bytes:
            evictable_connections = (each for phase in _EVICTABLE for each in self._phases[phase])
            evictable_bytes = sum(each.held_bytes for each in evictable_connections)
            if evictable_bytes * 2 <= self.most_bytes or not self._evict_oldest(member):
                return False
        self.set_held_bytes(member, member.held_bytes + amount)
        return True

    def enforce_bound(self, exempt: "HttpConnection") -> None:
        """Evict connections, except one, until the bound is satisfied."""
        while self.total > self.most_bytes and self._evict_oldest(exempt):
            pass

    def resume_waiting(self) -> None:
        """Resume reading from waiting connections, in the order of their waits, as long as there is room."""
        for member in list(self.waiting_connections):
            member.regulate_reading()
            if member in self.waiting_connections:
                return

    def _evict_oldest(self, exempt: "HttpConnection") -> bool:
        members = (
            member
            for phase in _EVICTABLE
            for member in self._phases[phase]
            if member.held_bytes and member is not exempt
        )
        oldest_member = min(members, key=lambda member: member.entry_number, default=None)
        if oldest_member is not None:
            oldest_member.evict()
        return oldest_member is not None
