# SPDX-License-Identifier: Apache-2.0
"""Many clients on several workers: every answer fits one order of all claims."""

import pytest

from tests.faults.harness.load import Load
from tests.faults.harness.service import running

WORKERS, WRITES = 4, 250


@pytest.mark.slow
def test_concurrent_claims_moves_and_reads_are_linearizable(database, tmp_path):
    with running(database, tmp_path, workers=WORKERS) as service:
        with Load(service.url) as load:
            load.wait_for(WRITES)
        load.judge()
        assert load.answers["refused"] > 0
        assert load.answers["read"] > 0
        # Every request got an answer, none of them an error of the server.
        assert not load.doubts
        assert load.answers["conflict"] == 0
