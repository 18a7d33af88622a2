# SPDX-License-Identifier: Apache-2.0
"""Counts the bytes that connections hold, and bounds their sum.

Counted are received bytes, requests that wait or are worked on, unsent answers and the state of watches.
Each connection may hold `SMALL_BYTES` at any time. Beyond that the bound of all applies: the connections
that have had an unfinished request or an unread answer for longest are evicted, as long as such
connections hold more than half. Requests that are worked on are never evicted; other connections wait.
"""

import threading
from itertools import islice
from typing import TYPE_CHECKING

from treeclaim.server.bounds import ROOM_SECONDS, SMALL_BYTES

if TYPE_CHECKING:
    from treeclaim.server.http.receiving import ReceivingConnection


class MemoryBudget:
    """The sum of the bytes that all connections of a process hold.

    Any thread may call `add`; the event loop calls the other methods.

    Attributes:
        total: Bytes held now.
        most: Total up to which a connection may hold more than `SMALL_BYTES`.
        waiting: Connections that wait for room, with the time since when.
    """

    def __init__(self, most: int) -> None:
        self.total = 0
        self.most = most
        self.waiting: dict[ReceivingConnection, float] = {}
        self._lock = threading.Lock()
        self._evictable: dict[ReceivingConnection, None] = {}
        """Evictable connections above `SMALL_BYTES`, the oldest first."""
        self._evictable_bytes = 0

    def add(self, member: "ReceivingConnection", change: int) -> None:
        """Count more bytes of a connection, or fewer."""
        with self._lock:
            member.held += change
            self.total += change
            if member.is_evictable:
                self._evictable_bytes += change
                self._enlist(member)

    def set_evictable(self, member: "ReceivingConnection", is_evictable: bool) -> None:  # noqa: FBT001 - a setter
        """Change whether a connection may be evicted."""
        with self._lock:
            if member.is_evictable is not is_evictable:
                member.is_evictable = is_evictable
                self._evictable_bytes += member.held if is_evictable else -member.held
                self._enlist(member)

    def _enlist(self, member: "ReceivingConnection") -> None:
        if not member.is_evictable or member.held <= SMALL_BYTES:
            self._evictable.pop(member, None)
        else:
            self._evictable.setdefault(member)

    def room_of(self, member: "ReceivingConnection") -> int:
        """Return how many bytes more a connection may hold, after evicting other ones."""
        while not (room := self._room_of(member)) and self._evictable_bytes * 2 > self.most:
            if not self._evict_oldest(member):
                break
        return room

    def _room_of(self, member: "ReceivingConnection") -> int:
        return max(SMALL_BYTES - member.held, self.most - self.total, 0)

    def enforce(self, exempt: "ReceivingConnection") -> None:
        """Evict other connections than one until the bound holds."""
        while self.total > self.most and self._evict_oldest(exempt):
            pass

    def _evict_oldest(self, exempt: "ReceivingConnection") -> bool:
        with self._lock:
            oldest = next(
                (member for member in islice(self._evictable, 2) if member is not exempt), None
            )
            if oldest is None:
                return False
            del self._evictable[oldest]
        oldest.evict()
        return True

    def wake(self) -> None:
        """Let some connections read on while there is room."""
        for member in list(self.waiting):
            if self.total >= self.most:
                return
            self.waiting.pop(member, None)
            member.read_on()

    def sweep(self, now: float) -> None:
        """Wake connections, and refuse those that have waited for too long."""
        self.wake()
        for member, since in list(self.waiting.items()):
            if now - since >= ROOM_SECONDS:
                del self.waiting[member]
                member.refuse_for_room()
