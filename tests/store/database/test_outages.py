# SPDX-License-Identifier: Apache-2.0
"""The log says once that the database goes, and once that it comes back."""

import logging

import pytest

from treeclaim.store.database.failures import outages
from treeclaim.store.database.failures.kinds import Failure

SILENT, LOCKED = Failure.SILENT.value, Failure.LOCK_TIMEOUT.value


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING, logger=outages.__name__)

    def said():
        return [line.getMessage() for line in caplog.records]

    return said


def test_many_failures_are_one_line_with_the_cause_and_one_when_it_is_over(lines):
    known = outages.Outages()
    for number in range(100):
        known.failed(SILENT, f"cause {number}")
    known.answered()
    known.answered()
    first, last = lines()
    assert "cause 0" in first
    assert "answers again" in last
    assert "100 x" in last


def test_a_database_that_fails_every_second_time_does_not_fill_the_log(lines):
    known = outages.Outages()
    for _ in range(100):
        known.failed(SILENT, "cause")
        known.answered()
    assert len(lines()) == 2


def test_a_lock_of_others_is_told_now_and_then_and_nothing_comes_back_after_it(lines):
    known = outages.Outages()
    for _ in range(100):
        known.failed(LOCKED, "cause")
        known.answered()
    assert len(lines()) == 1


def test_a_failure_that_goes_on_is_told_again_with_its_count(lines, monkeypatch):
    known = outages.Outages()
    known.failed(SILENT, "first")
    for _ in range(5):
        known.failed(SILENT, "more")
    monkeypatch.setattr(outages, "WARNING_INTERVAL", 0.0)
    known.failed(SILENT, "last")
    assert "6 x" in lines()[-1]
    assert "last" in lines()[-1]
