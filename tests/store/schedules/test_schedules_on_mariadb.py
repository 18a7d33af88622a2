# SPDX-License-Identifier: Apache-2.0
"""What `test_schedules` says, on MariaDB: a file of its own is run beside the other."""

import pytest

from tests.store.schedules.cases import critical, usual
from tests.store.schedules.test_schedules import explore


@pytest.mark.slow
@pytest.mark.parametrize("place", ["mariadb"], indirect=True)
def test_writes_that_meet_end_like_a_serial_order(place):
    explore(place, usual(place.kind))


@pytest.mark.slow
@pytest.mark.parametrize("place", ["mariadb"], indirect=True)
def test_writes_that_were_wrong_once_end_like_a_serial_order_with_more_preemptions(place):
    explore(place, critical(place.kind))
