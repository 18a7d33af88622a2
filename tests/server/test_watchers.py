# SPDX-License-Identifier: Apache-2.0
"""The event loop attends to each woken watcher, and to other connections in between."""

import asyncio
from time import thread_time
from typing import Any

from tests.loops import in_a_loop
from treeclaim.server.http.watchers import Watchers

MANY = 1_000


class Member:
    """A connection that watches.

    Attributes:
        times: How often it was attended to.
        is_dropped: Whether it was closed.
    """

    def __init__(self, act=None):
        """Watch; do something each time."""
        self.times = 0
        self.is_dropped = False
        self._act = act

    def send_events(self):
        self.times += 1
        if self._act is not None:
            self._act(self)

    def drop(self):
        self.is_dropped = True


async def settled(members, times):
    """Give the loop turns until each has been attended to so often."""
    for _ in range(10 * MANY):
        if all(member.times >= times for member in members):
            return
        await asyncio.sleep(0)


def wake_all(watchers, members):
    """Wake all, as news does."""
    for member in members:
        watchers.wake(member)


def test_wake_during_a_round_reaches_all_watchers():
    async def scene():
        watchers = Watchers(asyncio.get_running_loop(), MANY)
        news, heard = 1, {}

        def hear(member):
            nonlocal news
            heard[member] = news
            if member is late and member.times == 1:
                news = 2
                wake_all(watchers, members)

        members = [Member(hear) for _ in range(MANY)]
        late = members[MANY * 9 // 10]
        wake_all(watchers, members)
        await settled(members, 1)
        await settled(members[:1], 2)
        for _ in range(MANY):
            await asyncio.sleep(0)
        assert set(heard.values()) == {2}

    in_a_loop(scene)


def test_failing_watcher_is_dropped_and_others_continue():
    def fail(_member):
        raise ValueError

    async def scene():
        watchers = Watchers(asyncio.get_running_loop(), MANY)
        members = [Member() for _ in range(120)]
        broken = Member(fail)
        everybody = [*members[:60], broken, *members[60:]]
        for times in (1, 2):
            wake_all(watchers, everybody)
            await settled(members, times)
            assert {member.times for member in members} == {times}
        assert broken.is_dropped

    in_a_loop(scene)


def work_for_a_millisecond(_member):
    """Take processor time."""
    end = thread_time() + 0.001
    while thread_time() < end:
        pass


def test_loop_turn_is_bounded_with_many_watchers():
    async def scene():
        watchers = Watchers(asyncio.get_running_loop(), MANY)
        members = [Member(work_for_a_millisecond) for _ in range(100)]
        wake_all(watchers, members)
        done = []
        while not done or done[-1] < len(members):
            await asyncio.sleep(0)
            done.append(sum(member.times for member in members))
        in_a_turn = [after - before for before, after in zip([0, *done], done, strict=False)]
        # A millisecond each, and five for all.
        assert max(in_a_turn) <= 6

    in_a_loop(scene)


def test_constantly_woken_watcher_does_not_starve_others():
    async def scene():
        watchers = Watchers(asyncio.get_running_loop(), MANY)
        restless: Any = Member(watchers.wake)
        others = [Member() for _ in range(100)]
        watchers.wake(restless)
        wake_all(watchers, others)
        await settled(others, 1)
        assert {member.times for member in others} == {1}
        # The loop has other things to do all along, and gets them done.
        await asyncio.sleep(0)

    in_a_loop(scene)
