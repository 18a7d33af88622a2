# SPDX-License-Identifier: Apache-2.0
"""Trees, classes and traits, and what providers have of them."""

import pytest

from tests.store.schedules.exploration import explore
from tests.store.schedules.pairs.clients import clients_of, pairs_of


@pytest.mark.slow
@clients_of("trees", "classes-stocked", "classes-free", "parts", "names", "words")
def test_writes_that_meet_end_like_a_serial_order(place, world, client, preemptions):
    explore(place, pairs_of(client, world, place.kind, preemptions))
