# SPDX-License-Identifier: Apache-2.0
"""The bytes that connections hold, of any kind: one number for each, and one for all.

Code that keeps bytes of a connection adds them to its `HeldBytes`, and subtracts them when they are gone:
bytes that have arrived, a request that waits or is worked on, an answer that the kernel has not taken,
what a watch remembers. Before a connection reads it asks for its room, and reads no more.

Each may hold a little without asking. Beyond that the limit of all applies. Where it is reached,
unfinished requests and unread answers give way, the oldest first, if they are what fills it. Requests
that are worked on never do: a connection that wants to receive more waits until there is room, and so does
its client, as nothing is read from it meanwhile.
"""

import threading
from itertools import islice
from typing import Protocol

_AT_ONCE = 16
"""Connections that are told of room at a time, so that no turn of the loop is long."""


class AccountHolder(Protocol):
    """A connection, as the account knows it; the event loop calls all of it."""

    def give_up(self) -> None:
        """Release what is unfinished, or not taken."""

    def read_on(self) -> None:
        """Read again: there is room."""


class HeldBytes:
    """What a connection holds.

    Attributes:
        size: Bytes.
        holder: The connection.
    """

    __slots__ = ("_account", "holder", "is_yielding", "size")

    def __init__(self, account: "Account", holder: AccountHolder) -> None:
        self.size = 0
        self.holder = holder
        self.is_yielding = False
        self._account = account

    def add(self, change: int) -> None:
        """Count more bytes, or fewer; any thread may."""
        self._account.change(self, change)

    def let_yield(self, is_yielding: bool) -> None:  # noqa: FBT001 - a setter
        """Say whether it may be told to give up what it holds."""
        if is_yielding is not self.is_yielding:
            self._account.let_yield(self, is_yielding)

    @property
    def room(self) -> int:
        """How many bytes more it may hold now."""
        account = self._account
        return max(account.each - self.size, account.most - account.total, 0)

    def ask_for_room(self) -> int:
        """Have others give up if that is fair, and return how many bytes more it may hold."""
        return self.room or self._account.room_from_others(self)

    def wait_for_room(self) -> None:
        """Have the holder told when there is room."""
        self._account.waiting[self] = None

    def settle(self) -> None:
        """Have others give up if this one has been given more than there was room for."""
        self._account.settle(self)


class Account:
    """The sum of what all connections of a process hold.

    `change` and `let_yield` are for any thread, the rest for the event loop.

    Attributes:
        total: Bytes held now.
        most: The total up to which a connection may have more than a little.
        each: That little.
        waiting: Those that wait for room, in their order.
    """

    def __init__(self, most: int, each: int) -> None:
        self.total = 0
        self.most = most
        self.each = each
        self.waiting: dict[HeldBytes, None] = {}
        self._lock = threading.Lock()
        self._yielding: dict[HeldBytes, None] = {}
        """Those that may be told to give up, and hold more than a little; in the order in which they began to."""
        self._yielding_bytes = 0

    def change(self, hold: HeldBytes, change: int) -> None:
        """Count more bytes of a connection, or fewer."""
        with self._lock:
            hold.size += change
            self.total += change
            if hold.is_yielding:
                self._yielding_bytes += change
                self._place(hold)

    def let_yield(self, hold: HeldBytes, is_yielding: bool) -> None:  # noqa: FBT001 - a setter
        """Say that a connection may be told to give up, or may not any more."""
        with self._lock:
            # Another thread may have said it meanwhile.
            if hold.is_yielding is not is_yielding:
                hold.is_yielding = is_yielding
                self._yielding_bytes += hold.size if is_yielding else -hold.size
                self._place(hold)

    def _place(self, hold: HeldBytes) -> None:
        if not hold.is_yielding or hold.size <= self.each:
            self._yielding.pop(hold, None)
        elif hold not in self._yielding:
            self._yielding[hold] = None

    def room_from_others(self, asking: HeldBytes) -> int:
        """Have the oldest give up if those that can hold more than half of all, and return the room.

        If requests that are worked on fill the account, nobody would gain: those that ask would
        throw each other out until there is room.
        """
        while not asking.room and self._yielding_bytes * 2 > self.most:
            if not self._give_up_oldest(asking):
                break
        return asking.room

    def settle(self, but: HeldBytes) -> None:
        """Have the oldest others give up until the limit holds; an answer that is made has to be kept."""
        while self.total > self.most and self._give_up_oldest(but):
            pass

    def _give_up_oldest(self, but: HeldBytes) -> bool:
        with self._lock:
            oldest = next((hold for hold in islice(self._yielding, 2) if hold is not but), None)
            if oldest is None:
                return False
            self._yielding.pop(oldest)
        oldest.holder.give_up()
        return True

    def wake(self) -> None:
        """Tell some that wait that there is room, if there is."""
        for hold in list(islice(self.waiting, _AT_ONCE)):
            if self.total >= self.most:
                return
            self.waiting.pop(hold, None)
            hold.holder.read_on()
