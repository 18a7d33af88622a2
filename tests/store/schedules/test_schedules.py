# SPDX-License-Identifier: Apache-2.0
"""Whatever the interleaving of its writes, the store ends as if they had come one by one.

All pairs with two preemptions take half an hour of one core: `python -m tests.store.schedules`.
"""

import pytest

from tests.extent import Extent
from tests.store.schedules.cases import critical, quick, usual
from tests.store.schedules.exploration import Exploration
from tests.store.schedules.scripts import written


def explore(place, cases):
    """Explore some cases; fail with the script of the first schedule that goes wrong."""
    for case in cases:
        exploration = Exploration(place, case)
        for failure in exploration.failures():
            pytest.fail(written(case, failure), pytrace=False)
        assert exploration.count


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_readers_and_pruning_between_the_statements_of_writers_change_nothing(place):
    cases = quick()
    explore(place, cases if Extent.everything else cases[::6])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_writes_that_meet_end_like_a_serial_order(place):
    explore(place, usual(place.kind))


@pytest.mark.slow
@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_writes_that_were_wrong_once_end_like_a_serial_order_with_more_preemptions(place):
    explore(place, critical(place.kind))
