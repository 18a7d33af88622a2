# SPDX-License-Identifier: Apache-2.0
"""Round trips of the store to its database."""

import uuid
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest
import sqlalchemy as sa

from tests.budgets import rows_with
from tests.databases import EACH_SERVER
from tests.proxy import Proxy
from tests.service import fresh_database_on
from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import HoldTerms
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations.requests import ClaimRequest

TIMES = 12
"""Statements are prepared at their sixth execution, by round trips of their own."""


class Cloud:
    """Two hosts, a store with counted round trips, and another store.

    Args:
        store: Runs the measured operations.
        other: Prepares them.
    """

    def __init__(self, store, other):
        self.store, self.other = store, other
        self.hosts = [create_host(other, 200) for _ in range(2)]
        # Holds with an end cost claims that name none of them nothing (contract page 100, section 3).
        until = store.read_clock() + timedelta(days=1)
        for host in self.hosts:
            terms = HoldTerms(until, returns=True)
            held = make_claim(str(uuid.uuid4()), {host: 1}, hold=terms, knows_holds=True)
            other.replace_allocations([held])
        store.housekeeper.end_expired()
        self.cursor = store.load_changes(None).cursor

    def claims(self, count):
        """Claims of new consumers on the first host."""
        return [make_claim(str(uuid.uuid4()), {self.hosts[0]: 1}) for _ in range(count)]

    def add_consumer(self):
        """Claim something for a consumer on the first host; return its UUID."""
        (claim,) = self.claims(1)
        self.other.replace_allocations([claim])
        return claim.consumer_uuid

    def claim(self):
        return partial(self.store.replace_allocations, self.claims(1))

    def group_of_eight(self):
        requests = [ClaimRequest([claim]) for claim in self.claims(8)]

        def write():
            assert self.store.write(allocations.write_group, requests) == [None] * 8

        return write

    def move(self):
        claim = make_claim(self.add_consumer(), {self.hosts[1]: 1}, 1)
        return partial(self.store.replace_allocations, [claim])

    def release(self):
        return partial(self.store.delete_allocations, self.add_consumer())

    def batch_of_eight(self):
        return partial(self.store.place, self.claims(8))

    def nothing_new(self):
        self.follow()
        return self.follow

    def following_a_claim(self):
        self.add_consumer()
        return self.follow

    def following_a_change_of_shape(self):
        create_host(self.other, parent=self.hosts[0])
        return self.follow

    def follow(self):
        """Read the commits since the last call."""
        changes = self.store.load_changes(self.cursor)
        if changes is not None:
            self.cursor = changes.cursor


@pytest.mark.parametrize("kind", EACH_SERVER)
@rows_with("round_trips")
def test_operation_takes_few_round_trips(kind, tmp_path, name, most):
    with (
        fresh_database_on(kind, tmp_path) as url,
        closing(Proxy(sa.make_url(url).port)) as proxy,
        closing(Store(DatabaseSettings(url))) as other,
        closing(Store(DatabaseSettings(proxy.url(url)))) as store,
    ):
        cloud = Cloud(store, other)
        counts = []
        for _ in range(TIMES):
            operate = getattr(cloud, name.replace(" ", "_"))()
            before = proxy.round_trips
            operate()
            counts.append(proxy.round_trips - before)
        driver = store.engine.dialect.name
    assert counts[-1] <= most[driver][0]
    assert all(counts[0] <= bound for bound in most[driver][1:])
