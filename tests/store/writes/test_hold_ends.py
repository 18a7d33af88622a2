# SPDX-License-Identifier: Apache-2.0
"""Holds end by the database's clock, whoever asks (contract page 100, section 3)."""

import threading
import uuid
from datetime import timedelta

import pytest

from tests.store.hosts import create_host, make_claim
from treeclaim.model.extension.holds import HoldTerms
from treeclaim.store.database import clock, transactions
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.reading.holds import load_holds

HOST, HOLD, TAKER, OTHER = sorted(str(uuid.uuid4()) for _ in range(4))
SECONDS = 3600


@pytest.fixture
def ahead(monkeypatch):
    """Sets the clock of the database ahead."""
    seconds = [0]

    def now(connection):
        return clock.now_of(connection) + timedelta(seconds=seconds[0])

    monkeypatch.setattr(transactions, "now_of", now)
    monkeypatch.setattr(hold_writes, "now_of", now)
    return seconds


@pytest.fixture
def held(store, ahead):
    """A host that is all held, by a hold that returns and ends in an hour."""
    create_host(store, 8, uuid=HOST)
    until = (store.now() + timedelta(seconds=SECONDS)).replace(microsecond=0)
    store.replace_allocations([claim(HOLD, 8, hold=HoldTerms(until, returns=True))])
    return store


def claim(consumer, amount, **more):
    return make_claim(consumer, {HOST: amount}, knows_holds=True, **more)


def test_store_removes_expired_holds_in_the_background(held, ahead):
    held.keep_watch()
    ahead[0] = SECONDS
    waited = threading.Event()
    for _ in range(300):
        if not held.read(load_holds, [HOLD]):
            break
        waited.wait(0.05)
    assert held.read(load_holds, [HOLD]) == {}
