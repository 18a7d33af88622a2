# SPDX-License-Identifier: Apache-2.0
"""The connections of a process by phase, with their deadlines and the order in which they are closed."""

import logging
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treeclaim.server.http.receiving import ReceivingConnection

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


class ConnectionTable:
    """The open connections; those of each phase in the order in which they entered it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._phases: dict[Phase, dict[ReceivingConnection, None]] = {phase: {} for phase in Phase}

    def __len__(self) -> int:
        """Return how many are open."""
        return sum(len(members) for members in self._phases.values())

    def __iter__(self) -> "Iterator[ReceivingConnection]":
        """Return all that are open now."""
        return iter([member for members in self._phases.values() for member in members])

    def count(self, phase: Phase) -> int:
        """Return how many are in a phase."""
        return len(self._phases[phase])

    def add(self, member: "ReceivingConnection") -> None:
        """Add a connection."""
        self._phases[member.phase][member] = None

    def move(self, member: "ReceivingConnection", phase: Phase) -> None:
        """Move a connection to another phase."""
        self._phases[member.phase].pop(member, None)
        member.phase = phase
        self._phases[phase][member] = None

    def remove(self, member: "ReceivingConnection") -> None:
        """Remove a connection that is closed."""
        self._phases[member.phase].pop(member, None)

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
        """Let late connections act."""
        for member in [member for member in self if now >= member.deadline]:
            try:
                member.expire()
            except Exception:  # noqa: BLE001 - the deadlines of all others have to be checked
                _LOG.exception("Dropped a connection")
                member.drop()
