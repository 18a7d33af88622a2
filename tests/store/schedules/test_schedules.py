# SPDX-License-Identifier: Apache-2.0
"""Interleaved writes end like a serial order: some pairs on SQLite, and former defects.

`test_pairs.py` has all pairs.
"""

import pytest

from tests.databases import EACH_SERVER
from tests.store.schedules.cases import critical, quick
from tests.store.schedules.exploration import explore


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_readers_and_pruning_between_statements_change_no_outcome(place):
    explore(place, quick())


@pytest.mark.slow
@pytest.mark.parametrize("place", EACH_SERVER, indirect=True)
def test_fixed_write_conflicts_are_serializable_with_more_preemptions(place):
    explore(place, critical(place.kind))
