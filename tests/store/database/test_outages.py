# SPDX-License-Identifier: Apache-2.0
"""The log reports the start and the end of an outage once."""

import logging

from treeclaim.store.database import failures


def test_alternating_failures_log_two_lines(caplog):
    caplog.set_level(logging.WARNING, logger=failures.__name__)
    outages = failures.Outages()
    for _ in range(100):
        outages.record_failure(failures.Failure.SILENT.value, "cause")
        outages.record_success()
    assert len(caplog.records) == 2
