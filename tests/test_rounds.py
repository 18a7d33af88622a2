# SPDX-License-Identifier: Apache-2.0
"""Rounds of work: whoever wakes is followed by a round, whatever happens meanwhile."""

import itertools
import threading
from collections import deque
from contextlib import suppress

import pytest

from tests.servers import eventually
from treeclaim.rounds import Rounds


class Script:
    """Rounds whose turns and mishaps a test decides.

    Attributes:
        turns: How many turns have been begun, and not been taken.
        unheard: Whether somebody woke, and no round has begun since.
    """

    def __init__(self):
        """Begin with nobody awake."""
        self.turns = 0
        self.unheard = False
        self.rounds = Rounds(self._work, self._begin)
        self._can_begin = True
        self._within = None
        self._is_within = False

    def wake(self):
        """Wake, where turns can be begun."""
        self.unheard = True
        self.rounds.wake()

    def wake_in_vain(self):
        """Wake, where they cannot."""
        self._can_begin = False
        self.wake()
        self._can_begin = True

    def turn(self, within=None):
        """Take a turn, if one has been begun, in the middle of which something happens."""
        if self.turns:
            self.turns -= 1
            self._within = within
            self.rounds.turn(self._begin)

    def turn_that_dies(self):
        """Take a turn whose thread is stopped."""
        with suppress(SystemExit):
            self.turn(self._die)

    def _begin(self):
        if not self._can_begin:
            raise RuntimeError("can't start new thread")
        self.turns += 1
        assert self.turns == 1

    def _work(self):
        assert not self._is_within
        self._is_within = True
        self.unheard = False
        try:
            return bool(self._within and self._within())
        finally:
            self._is_within = False

    def fail(self):
        """Fail in the middle of a round."""
        raise ValueError

    def _die(self):
        raise SystemExit

    def want_more(self):
        """Say in a round that there is more."""
        return True


ACTIONS = {
    "wake": Script.wake,
    "wake in vain": Script.wake_in_vain,
    "round": Script.turn,
    "round with a wake": lambda script: script.turn(script.wake),
    "round that fails": lambda script: script.turn(script.fail),
    "round with a wake that fails": lambda script: script.turn(
        lambda: (script.wake(), script.fail())
    ),
    "round with more to do": lambda script: script.turn(script.want_more),
    "round that dies": Script.turn_that_dies,
}


MISHAPS = {"wake in vain", "round that dies"}
"""After which nothing goes on before the next wake."""


@pytest.mark.parametrize("first", ACTIONS)
def test_no_order_of_wakes_rounds_and_mishaps_loses_a_wake(first, caplog):
    caplog.set_level("CRITICAL", "treeclaim.rounds")
    for rest in itertools.product(ACTIONS, repeat=3):
        script = Script()
        for name in (first, *rest):
            ACTIONS[name](script)
            # So a timer sees whether it has to wake again.
            assert script.rounds.is_under_way == bool(script.turns)
        if not MISHAPS.isdisjoint((first, *rest)):
            script.wake()
        taken = 0
        while script.turns:
            script.turn()
            taken += 1
        assert not script.unheard
        assert taken <= 1


def test_a_round_that_fails_is_logged_and_followed_by_another(caplog):
    script = Script()
    script.wake()
    script.turn(script.fail)
    assert script.turns == 1
    assert "ValueError" in caplog.text
    script.turn()
    assert script.turns == 0


def test_rounds_end_though_somebody_wakes_in_each_and_others_have_their_turn_between_them():
    script = Script()
    script.wake()
    for _ in range(100):
        script.turn(script.wake)
        # The turn has ended, and the next one waits behind what others have to do.
        assert script.turns == 1
    script.turn()
    assert not script.rounds.is_under_way


def test_what_many_threads_leave_is_done_whatever_they_meet():
    left, done, failed = deque(), [], []

    def work():
        while left:
            done.append(left.popleft())
            if len(done) % 7 == 0:
                failed.append(1)
                raise ValueError

    def begin():
        if len(done) % 5 == 0 and not left:
            raise RuntimeError("can't start new thread")
        threading.Thread(target=rounds.run, args=(lambda: None,), daemon=True).start()

    rounds = Rounds(work, begin)

    def leave(of_thread):
        for number in range(200):
            left.append((of_thread, number))
            rounds.wake()

    threads = [threading.Thread(target=leave, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: not rounds.is_under_way, "no round is due")
    assert not left
    assert len(done) == len(set(done)) == 6 * 200
    assert failed
