# SPDX-License-Identifier: Apache-2.0
"""Conditions of providers, and the claims that they refuse or that let them begin."""

import pytest

from tests.store.schedules.exploration import explore
from tests.store.schedules.pairs.clients import clients_of, pairs_of


@pytest.mark.slow
@clients_of("conditions", "conditions-armed")
def test_writes_that_meet_end_like_a_serial_order(place, world, client, preemptions):
    explore(place, pairs_of(client, world, place.kind, preemptions))
