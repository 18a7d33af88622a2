# SPDX-License-Identifier: Apache-2.0
"""Many who draw from one hold are one transaction, and readers of the feed are told (page 100)."""

import uuid

import pytest
import sqlalchemy as sa

from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import HoldTerms
from treeclaim.store.reading.consumers import load_consumer
from treeclaim.store.schema import tables

CLIENTS = 16
HOST, HOLD, *TAKERS = sorted(str(uuid.uuid4()) for _ in range(CLIENTS + 2))


def claim(consumer, amount, generation=None, **fields):
    return make_claim(consumer, {HOST: amount}, generation, knows_holds=True, **fields)


@pytest.fixture(params=[True, False], ids=["returns", "does not return"])
def held(request, store):
    """A host that one hold has for itself."""
    create_host(store, 2 * CLIENTS, uuid=HOST)
    store.replace_allocations([claim(HOLD, 2 * CLIENTS, hold=HoldTerms(returns=request.param))])
    return store


def test_amounts_released_by_placement_are_free_and_undrawn(held):
    """The Placement service knows nothing of draws; nothing is overbooked to make them good."""
    held.replace_allocations([claim(TAKERS[0], 4, from_holds=[HOLD])])
    used = tables.allocations
    with held.engine.begin() as connection:
        connection.execute(sa.update(used).where(used.c.consumer_id == TAKERS[0]).values(used=1))
    # Three are free now.
    held.replace_allocations([claim(TAKERS[1], 3)])
    held.delete_allocations(TAKERS[0])
    drawn = held.read(lambda transaction: transaction.rows(sa.select(tables.draws)))
    vcpu = held.read(load_consumer, HOLD)[0]["allocations"][HOST]["resources"]["VCPU"]
    assert not drawn
    assert vcpu in (2 * CLIENTS - 4, 2 * CLIENTS - 3)
    rows = held.read(lambda transaction: transaction.rows(sa.select(used.c.used)))
    assert sum(row.used for row in rows) <= 2 * CLIENTS
