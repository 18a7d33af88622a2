# SPDX-License-Identifier: Apache-2.0
"""Claims of inventories that consume the same one, and whoever changes what they consume."""

import pytest

from tests.store.schedules.exploration import explore
from tests.store.schedules.pairs.clients import clients_of, pairs_of


@pytest.mark.slow
@clients_of("consumption-absent")
def test_writes_that_meet_end_like_a_serial_order(place, world, client, preemptions):
    explore(place, pairs_of(client, world, place.kind, preemptions))
