# SPDX-License-Identifier: Apache-2.0
"""Retention of the requests of consumers (contract page 100, section 4)."""

import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.store.hosts import create_host, make_claim
from treeclaim.store.database import systems, transactions
from treeclaim.store.housekeeping import FEED_RETENTION
from treeclaim.store.reading.holders import load_requests
from treeclaim.store.schema import tables

HOST, SERVER, MIGRATION = sorted(str(uuid.uuid4()) for _ in range(3))
REQUEST = ["resources=VCPU:1&required=CUSTOM_Ä"]


@pytest.fixture
def ahead(monkeypatch):
    """Set the clock of the database forward."""
    hours = [0]

    def now(connection):
        return systems.read_clock(connection) + timedelta(hours=hours[0])

    monkeypatch.setattr(transactions, "read_clock", now)
    return hours


@pytest.fixture
def placed(store, ahead):
    """A consumer with a stored request."""
    create_host(store, 8, uuid=HOST)
    store.replace_allocations([claim(SERVER, 1, None, request=REQUEST)])
    assert store.read(load_requests, [SERVER]) == {SERVER: REQUEST}
    return store


def claim(consumer, amount, generation, **fields):
    return make_claim(consumer, {HOST: amount} if amount else {}, generation, **fields)


def test_requests_of_many_removed_consumers_are_pruned(placed, ahead):
    """The Placement service removes consumers, but not their requests."""
    rows = [{"consumer_uuid": str(number), "request": "[]"} for number in range(1_001)]
    with placed.engine.begin() as connection:
        connection.execute(sa.delete(tables.allocations))
        connection.execute(sa.delete(tables.consumers))
        connection.execute(sa.insert(tables.requests), rows)
    placed.housekeeper.prune(FEED_RETENTION)
    assert placed.read(load_requests, [SERVER]) == {SERVER: REQUEST}
    ahead[0] = 25
    placed.housekeeper.prune(FEED_RETENTION)
    rows = placed.read(lambda transaction: transaction.rows("SELECT * FROM treeclaim_requests"))
    assert not rows
