# SPDX-License-Identifier: Apache-2.0
"""Every write of allocations locks consumers first, then holds, then providers (contract page 100).

A draw finds its holds only in the row of its consumer. A write that locked a hold before a consumer could therefore
deadlock with a draw.
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from tests.databases import EACH_SERVER
from tests.lock_waits import await_waiter, session_of, waiters
from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import HoldTerms, Omission, ReshapedInventory
from treeclaim.model.extension.audit import FindingKind
from treeclaim.model.provider import Inventory
from treeclaim.store.audit.repairs import repair
from treeclaim.store.operations import reshaper
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.allocations import kept_requests
from treeclaim.store.schema import tables

pytestmark = pytest.mark.slow

# The holds sort before the consumers by name and id, so that only a rule can lock them later.
FIRST, HOLD, SERVER, MIGRATION, HOST = (str(uuid.UUID(int=number)) for number in range(1, 6))
STOCK = {"VCPU": Inventory(100)}
PATIENT = 60.0


@pytest.fixture
def store_with_draw(store):
    """A store with a consumer that has drawn from one of two holds."""
    create_host(store, STOCK, uuid=HOST)
    for consumer in (FIRST, HOLD):
        store.replace_allocations([hold(consumer, 20)])
    store.replace_allocations([claim(SERVER, 4, from_holds=(HOLD,))])
    return store


def claim(consumer, amount, **fields):
    amounts = {HOST: amount} if amount else {}
    terms = {"generation": Omission.OMITTED, "knows_holds": True, **fields}
    return make_claim(consumer, amounts, **terms)


def hold(consumer, amount, **terms):
    return claim(consumer, amount, hold=HoldTerms(returns=True, **terms))


def reshape(store, claims):
    generation = store.read(lambda t: t.scalar("SELECT generation FROM resource_providers"))
    return store.write(reshaper.reshape, [ReshapedInventory(HOST, generation, STOCK)], claims)


def repair_server(store, kind, **item):
    return repair(
        store, kind, {"consumer": SERVER, **item}, ("p", "u"), until=monotonic() + PATIENT
    )


PATHS = {
    "a draw": lambda store: store.replace_allocations([claim(SERVER, 6, from_holds=(HOLD,))]),
    "a release": lambda store: store.delete_allocations(SERVER),
    "a move": lambda store: store.replace_allocations([claim(SERVER, 0), claim(MIGRATION, 4)]),
    "a hold and its consumer": lambda store: store.replace_allocations(
        [hold(HOLD, 10), claim(SERVER, 2)]
    ),
    "a consumer and its hold": lambda store: store.replace_allocations(
        [claim(SERVER, 2), hold(HOLD, 10)]
    ),
    "a reshape": lambda store: reshape(store, [hold(HOLD, 10), claim(SERVER, 2)]),
    "kept requests": lambda store: store.write(
        kept_requests.change_requests, {HOLD: None, SERVER: ["resources=VCPU:4"]}
    ),
    "a repair of draws": lambda store: repair_server(store, FindingKind.BROKEN_DRAW),
    "a repair that releases": lambda store: repair_server(
        store, FindingKind.ORPHANED, consumer_generation=1
    ),
    "terms": lambda store: store.write(
        hold_writes.change_terms, {HOLD: {"note": "x"}, SERVER: {"note": "x"}}
    ),
}
"""Writes that concern both the server and its hold."""


def is_locked(store, table, uuid):
    """Return whether another session has locked a row."""
    query = sa.select(table.c.id).where(table.c.uuid == uuid).with_for_update(nowait=True)
    with store.engine.connect() as connection:
        try:
            connection.execute(query)
        except DBAPIError:
            return True
        finally:
            connection.rollback()
    return False


def find_locked_rows(store, session):
    """Return the transactions that wait for a session, and the rows that they have locked.

    A transaction that waits for too long is rolled back and retried; observations in between are discarded.
    """
    end = monotonic() + PATIENT
    while monotonic() < end:
        waiting = await_waiter(store.engine, session)
        rows = {SERVER: tables.consumers, HOST: tables.resource_providers}
        locked = {uuid for uuid, table in rows.items() if is_locked(store, table, uuid)}
        if waiters(store.engine, session) == waiting:
            return waiting, locked
    raise AssertionError("no transaction waits for long enough")


def lock(connection, table, uuid):
    connection.execute(sa.select(table.c.id).where(table.c.uuid == uuid).with_for_update())


@pytest.mark.parametrize("database_kind", EACH_SERVER, indirect=True)
@pytest.mark.parametrize("path", PATHS)
def test_hold_is_locked_after_consumers_and_before_providers(store_with_draw, path):
    with ThreadPoolExecutor(1) as pool, store_with_draw.engine.connect() as holder:
        lock(holder, tables.consumers, HOLD)
        future = pool.submit(PATHS[path], store_with_draw)
        waiting, locked = find_locked_rows(store_with_draw, session_of(holder))
        holder.rollback()
        future.result(PATIENT)
    assert len(waiting) == 1
    assert locked == {SERVER}
