# SPDX-License-Identifier: Apache-2.0
"""A bound of the work that the requests of a test make, and files that are checked with each request."""

import signal

import pytest

from treeclaim.api.protocol import followed_files

MOST_SECONDS = 60
"""CPU seconds of all requests of a test; the defects that the tests look for took minutes."""


class TooMuchWorkError(Exception):
    """The requests of a test take too much of the processor."""


@pytest.fixture
def limited_work():
    """End a test that takes too much of the processor of this process."""

    def end(*_):
        raise TooMuchWorkError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


@pytest.fixture
def checking_at_once(monkeypatch):
    """Check files of passwords and policies with each request."""
    monkeypatch.setattr(followed_files, "CHECK_SECONDS", 0.0)
