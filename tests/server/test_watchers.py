# SPDX-License-Identifier: Apache-2.0
"""Each woken watcher sends events, and other connections get turns of the event loop in between."""

import asyncio
from itertools import pairwise
from time import thread_time
from typing import Any

from tests.loops import in_a_loop
from treeclaim.server.http.watchers import Watchers

MANY = 1_000


class Member:
    """A connection that watches.

    Attributes:
        times: Number of calls of `send_events`.
        is_dropped: Whether the connection was closed.
    """

    def __init__(self, act=None):
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
    """Yield to the loop until each member has been called so often."""
    for _ in range(10 * MANY):
        if all(member.times >= times for member in members):
            return
        await asyncio.sleep(0)


def wake_all(watchers, members):
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
        all_members = [*members[:60], broken, *members[60:]]
        for times in (1, 2):
            wake_all(watchers, all_members)
            await settled(members, times)
            assert {member.times for member in members} == {times}
        assert broken.is_dropped

    in_a_loop(scene)


def work_for_a_millisecond(_member):
    end = thread_time() + 0.001
    while thread_time() < end:
        pass


def test_loop_turn_is_bounded_with_many_watchers():
    async def scene():
        watchers = Watchers(asyncio.get_running_loop(), MANY)
        members = [Member(work_for_a_millisecond) for _ in range(100)]
        wake_all(watchers, members)
        totals = [0]
        while totals[-1] < len(members):
            await asyncio.sleep(0)
            totals.append(sum(member.times for member in members))
        calls_in_turns = [after - before for before, after in pairwise(totals)]
        # Each call takes a millisecond, and a turn may take five.
        assert max(calls_in_turns) <= 6

    in_a_loop(scene)


def test_constantly_woken_watcher_does_not_starve_others():
    async def scene():
        watchers = Watchers(asyncio.get_running_loop(), MANY)
        restless: Any = Member(watchers.wake)
        members = [Member() for _ in range(100)]
        watchers.wake(restless)
        wake_all(watchers, members)
        await settled(members, 1)
        assert {member.times for member in members} == {1}
        # The loop still runs other tasks.
        await asyncio.sleep(0)

    in_a_loop(scene)
