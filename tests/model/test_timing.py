# SPDX-License-Identifier: Apache-2.0
"""A deadline ends any loop over input."""

import itertools

import pytest

from treeclaim.model import timing
from treeclaim.model.errors import RequestGivenUpError
from treeclaim.model.timing import Deadline, has_passed


@pytest.fixture
def clock(monkeypatch):
    """A clock with a time that the test sets."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(timing, "monotonic", lambda: Clock.now)
    return Clock


def test_deadline_passes_after_its_time(clock):
    assert not has_passed(100.0)
    assert has_passed(99.9)
    assert not has_passed(None)
    deadline = Deadline(5)
    clock.now = 105.0
    assert not deadline.is_over
    deadline.check()
    clock.now = 105.1
    assert deadline.is_over
    with pytest.raises(RequestGivenUpError, match="not done after 5 seconds"):
        deadline.check()


def test_deadline_ends_an_endless_loop(clock):
    numbers = []
    with pytest.raises(RequestGivenUpError):
        for number in Deadline(5).each(itertools.count()):
            numbers.append(number)
            clock.now += 10.0 if number == 300 else 0.0
    assert numbers == [*range(301)]
