# SPDX-License-Identifier: Apache-2.0
"""The time of each stage is its own, though stages draw from each other."""

from time import perf_counter

import pytest

from treeclaim.model.stages import (
    COMMIT,
    HAND_OVER,
    LOCKS,
    RELATE,
    STATEMENTS,
    TRANSACTION,
    WAIT,
    WRITE,
    Stages,
)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by so much as a test says."""

    class Clock:
        now = perf_counter()

        def passes(self, seconds):
            self.now += seconds

    made = Clock()
    monkeypatch.setattr("treeclaim.model.stages.perf_counter", lambda: made.now)
    return made


def test_stage_time_excludes_nested_stages(clock):
    stages = Stages()

    def first():
        for number in range(3):
            clock.passes(1)
            yield number

    def second(items):
        for item in items:
            clock.passes(10)
            yield item

    drawn = stages.timed("second", second(stages.timed("first", first())))
    clock.passes(100)
    stages.enter(WRITE)
    for number in drawn:
        clock.passes(1_000)
        assert number < 3
    stages.enter(RELATE)
    assert stages.seconds == pytest.approx({RELATE: 100, "first": 3, "second": 30, WRITE: 3_000})


def test_failed_stage_is_left(clock):
    stages = Stages()

    def failing():
        clock.passes(5)
        raise LookupError
        yield

    with pytest.raises(LookupError):
        next(stages.timed("failing", failing()))
    clock.passes(7)
    stages.enter(WRITE)
    assert stages.seconds == pytest.approx({"failing": 5, RELATE: 7})


def test_unconsumed_iterator_takes_no_time(clock):
    stages = Stages()
    next(stages.timed("endless", iter(int, 1)))
    clock.passes(3)
    stages.enter(WRITE)
    assert stages.seconds == pytest.approx({"endless": 0, RELATE: 3})


@pytest.mark.parametrize("is_told", [True, False])
def test_group_member_waits_until_the_shared_transaction_begins(clock, is_told):
    early = Stages(WAIT)
    clock.passes(1)
    leader = Stages(WAIT)
    clock.passes(2)
    late = Stages(WAIT)
    clock.passes(4)
    for seconds, stage in ((8, LOCKS), (16, STATEMENTS), (32, COMMIT)):
        leader.enter(stage)
        clock.passes(seconds)
    leader.enter(HAND_OVER)
    clock.passes(64)
    for stages, waited in ((early, 7), (late, 4)):
        stages.share(leader, is_told=is_told)
        stages.stop()
        shared = {LOCKS: 8, STATEMENTS: 16, COMMIT: 32, HAND_OVER: 64}
        assert stages.seconds == pytest.approx({WAIT: waited} | shared)
        assert stages.told == (TRANSACTION if is_told else ())
