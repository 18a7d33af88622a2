# SPDX-License-Identifier: Apache-2.0
"""The log says once that the database goes, and once that it comes back."""

import logging

import pytest

from treeclaim.store.database import failures as outages
from treeclaim.store.database.failures import Failure

SILENT, LOCKED = Failure.SILENT.value, Failure.LOCK_TIMEOUT.value


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.WARNING, logger=outages.__name__)

    def said():
        return [line.getMessage() for line in caplog.records]

    return said


def test_outage_logs_first_cause_and_recovery_with_count(lines):
    known = outages.Outages()
    for number in range(100):
        known.failed(SILENT, f"cause {number}")
    known.answered()
    known.answered()
    first, last = lines()
    assert "cause 0" in first
    assert "answers again" in last
    assert "100 x" in last


def test_alternating_failures_log_two_lines(lines):
    known = outages.Outages()
    for _ in range(100):
        known.failed(SILENT, "cause")
        known.answered()
    assert len(lines()) == 2
