# SPDX-License-Identifier: Apache-2.0
"""Many claim at once through one store: each has its own outcome, and nothing is overbooked."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import sqlalchemy as sa

from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.model.errors import (
    InvalidValueError,
    ResourceClassNotFoundError,
    StoreUnavailableError,
    TreeclaimError,
)
from treeclaim.replica import Replica
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.timeouts import Timeouts
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.schema.tables import resource_providers

LONG = 60.0


def claim(consumer, amounts, generation=Omission.OMITTED, project="project"):
    return make_claim(consumer, amounts, generation, project_id=project)


def used_of(store, host):
    """Used amount and generation of a host."""
    with Replica(store).current() as forest:
        row = forest.row_of(host)
        (stock,) = forest.inventories(row)
        return stock.used, forest.provider(row).generation


def test_each_claim_of_a_group_raises_the_generation_of_its_providers_by_one(store):
    host, spare = create_host(store, 20), create_host(store, 20)
    requests = [ClaimRequest([claim(str(uuid.uuid4()), {host: 1}, None)]) for _ in range(5)]
    consumer = str(uuid.uuid4())
    requests.append(ClaimRequest([claim(consumer, {host: 1, spare: 1}, None)]))
    assert store.write(claims.write_group, requests) == [None] * 6
    assert used_of(store, host) == (6, 7)
    assert used_of(store, spare) == (1, 2)


def at_once(*actions):
    """Run actions at the same time; return what each raised."""
    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.exception(LONG) for future in [pool.submit(action) for action in actions]]


def while_locked(store, rows, *actions):
    """Run actions while somebody else holds rows, until all of them wait or are done."""
    with store.engine.connect() as holder, holder.begin():
        holder.execute(sa.update(resource_providers).where(rows).values(name="locked"))
        return at_once(*actions)


def test_invalid_claims_do_not_fail_other_claims(store):
    """Claims that the database itself refuses, or that name what is not there."""
    host = create_host(store, 1000)

    def good():
        store.replace_allocations([claim(str(uuid.uuid4()), {host: 1}, None)])

    def too_long():
        invalid = claim(str(uuid.uuid4()), {host: 1}, None, project="p" * 300)
        store.replace_allocations([invalid])

    def huge():
        store.replace_allocations([claim(str(uuid.uuid4()), {host: 1 << 70}, None)])

    def classless():
        invalid = ConsumerClaim(str(uuid.uuid4()), {host: {"CUSTOM_NO": 1}}, "p", "u", None)
        store.replace_allocations([invalid])

    good()
    for _ in range(5):
        errors = at_once(good, too_long, good, huge, good, classless, good, good)
        for number in (0, 2, 4, 6, 7):
            assert errors[number] is None, errors[number]
        if store.engine.dialect.name != "sqlite":
            assert isinstance(errors[1], InvalidValueError)
        assert isinstance(errors[3], TreeclaimError)
        assert isinstance(errors[5], ResourceClassNotFoundError)
    assert used_of(store, host)[0] in {26, 31}


def test_claim_waiting_for_a_lock_fails_no_other_claim(store, database_url):
    if store.engine.dialect.name == "sqlite":
        pytest.skip("SQLite has one lock")
    locked, free = create_host(store, 1000), create_host(store, 1000)
    short = Timeouts(lock=2)
    with closing(Store(DatabaseSettings(database_url, timeouts=short))) as crowded:

        def on(host):
            return lambda: crowded.replace_allocations([claim(str(uuid.uuid4()), {host: 1}, None)])

        on(free)()
        errors = while_locked(
            store, resource_providers.c.uuid == locked, *[on(locked), on(free)] * 5
        )
    assert [type(error) for error in errors[::2]] == [StoreUnavailableError] * 5
    assert errors[1::2] == [None] * 5
    assert used_of(store, free)[0] == 6
