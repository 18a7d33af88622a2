# SPDX-License-Identifier: Apache-2.0
"""All connections of a worker by phase: which are past their deadline, and which are closed first."""

from collections.abc import Hashable, Iterator
from enum import Enum, auto
from itertools import islice
from typing import Protocol


class Phase(Enum):
    """What a connection is in the middle of."""

    OPENING = auto()
    """Nothing has been received yet."""

    READING = auto()
    """The head of a request is on its way."""

    RECEIVING = auto()
    """The body of a request is on its way."""

    ANSWERING = auto()
    """A request waits for a thread, or a thread works on it."""

    WATCHING = auto()
    """It is sent news as it comes, and has read what it was sent."""

    SENDING = auto()
    """The client has not read the part of its answer that was made."""

    IDLE = auto()
    """It was answered, and is kept."""

    LINGERING = auto()
    """It was answered, and is read from until the client has seen that."""


_GIVE_WAY = (
    *(Phase.OPENING, Phase.LINGERING, Phase.READING, Phase.RECEIVING, Phase.IDLE),
    Phase.SENDING,
)
"""Order in which connections are closed when there are too many: those that cost a client least first.
A connection that is being answered, or watches, is never closed for another."""


class TableEntry(Hashable, Protocol):
    """A connection as the table knows it."""

    phase: Phase
    deadline: float

    def expire(self) -> None:
        """Act on a deadline that has passed."""

    def drop(self) -> None:
        """Close at once."""


class ConnectionTable:
    """The connections; those of each phase in the order in which they came to it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._phases: dict[Phase, dict[TableEntry, None]] = {phase: {} for phase in Phase}

    def __len__(self) -> int:
        """Return how many are open."""
        return sum(len(members) for members in self._phases.values())

    def __iter__(self) -> Iterator[TableEntry]:
        """Go through all that are open now."""
        return iter([member for members in self._phases.values() for member in members])

    def count(self, phase: Phase) -> int:
        """Return how many are in a phase."""
        return len(self._phases[phase])

    def add(self, member: TableEntry) -> None:
        """Add a connection."""
        self._phases[member.phase][member] = None

    def move(self, member: TableEntry, phase: Phase) -> None:
        """Move a connection to another phase."""
        self._phases[member.phase].pop(member, None)
        member.phase = phase
        self._phases[phase][member] = None

    def remove(self, member: TableEntry) -> None:
        """Remove a connection that is closed."""
        self._phases[member.phase].pop(member, None)

    def make_room(self, others: int = 0) -> bool:
        """Close a connection if there are too many; return whether there is room.

        Args:
            others: Connections that are not in the table yet.
        """
        return len(self) + others < self._most or self.drop_one()

    def drop_one(self) -> bool:
        """Close the connection that costs a client least, if any; return whether one was closed."""
        for phase in _GIVE_WAY:
            for member in self._phases[phase]:
                member.drop()
                return True
        return False

    def sweep(self, now: float, most: int) -> bool:
        """Let connections act whose deadline has passed, but only so many; return whether all have."""
        late = (member for member in self if now >= member.deadline)
        for member in islice(late, most):
            member.expire()
        return next(late, None) is None
