# SPDX-License-Identifier: Apache-2.0
"""Repairs of expired holds and of roots; `gabbits/audit.yaml` has the other kinds."""

import time
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import uuid_of
from tests.databases import EACH_SERVER, empty_database
from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import HoldTerms
from treeclaim.model.extension.audit import FindingKind, RepairResult
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.audit import repairs
from treeclaim.store.audit.findings import load_findings
from treeclaim.store.feed.news import load_news, load_roots, select_news
from treeclaim.store.feed.shards import load_cursor
from treeclaim.store.operations.catalogue import standard_names
from treeclaim.store.operations.locks import provider_rows
from treeclaim.store.operations.providers import providers
from treeclaim.store.reading.holds import load_draws
from treeclaim.store.schema import revisions
from treeclaim.store.schema import tables as schema

OWNER = ("project", "user")
"""Where two may write at once."""


def add(store, name, parent=None):
    """Make a provider with 16 VCPU in an aggregate; return its uuid."""
    uuid = uuid_of(name)
    parent_uuid = None if parent is None else uuid_of(parent)
    store.write(providers.create, uuid=uuid, name=name, parent_uuid=parent_uuid)
    return uuid


def by_hand(store, statement):
    """Change the database beside the service."""
    with store.engine.begin() as connection:
        connection.execute(statement)


def id_of(store, name):
    table = schema.resource_providers
    with store.engine.connect() as connection:
        return connection.scalar(sa.select(table.c.id).where(table.c.uuid == uuid_of(name)))


def root_of(store, name):
    """The id of a provider's root."""
    table = schema.resource_providers
    query = sa.select(table.c.root_provider_id).where(table.c.uuid == uuid_of(name))
    with store.engine.connect() as connection:
        return connection.scalar(query)


def give_root(store, name, root):
    """Write a root by hand."""
    table = schema.resource_providers
    by_hand(
        store,
        sa.update(table)
        .where(table.c.uuid == uuid_of(name))
        .values(root_provider_id=id_of(store, root)),
    )


def mend(store, kind, **item):
    """Repair one finding; return its result."""
    return repairs.repair(store, kind, item, OWNER, until=time.monotonic() + 30).result


def test_repair_removes_expired_hold_and_its_draws(store):
    hold, taker = uuid_of("hold"), uuid_of("taker")
    host = create_host(store, 8)
    terms = HoldTerms(returns=True)
    store.replace_allocations([make_claim(hold, {host: 4}, knows_holds=True, hold=terms)])
    store.replace_allocations([make_claim(taker, {host: 3}, from_holds=[hold])])
    by_hand(store, sa.update(schema.holds).values(ends_at=store.now() - timedelta(minutes=2)))
    kinds = [FindingKind.EXPIRED_HOLD]
    findings = store.read(load_findings, kinds, 10, lambda *_: frozenset())
    assert findings[FindingKind.EXPIRED_HOLD].items == [{"consumer": hold}]
    results = [mend(store, FindingKind.EXPIRED_HOLD, consumer=hold) for _ in range(2)]
    assert results == [RepairResult.DONE, RepairResult.GONE]
    assert store.read(load_draws, [taker]) == {}


def test_repaired_root_is_reported_to_watchers_of_the_wrong_tree(store):
    for name in ("right", "wrong"):
        add(store, name)
    below = add(store, "below", "right")
    give_root(store, "below", "wrong")
    cursor = store.read(load_cursor)
    assert mend(store, FindingKind.BROKEN_ROOT, provider=below) is RepairResult.DONE

    def told(transaction, name):
        news = load_news(transaction, cursor)
        return select_news(transaction, news, load_roots(transaction, [uuid_of(name)])).changes

    for name in ("right", "wrong"):
        assert store.read(told, name).keys() == {below}


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_SERVER)
def test_repair_rereads_tree_that_moved_before_the_lock(kind, tmp_path, monkeypatch):
    with empty_database(kind, tmp_path) as url:
        store, moving_store = Store(DatabaseSettings(url)), Store(DatabaseSettings(url))
        revisions.sync(store.engine)
        store.write(standard_names.sync_standard_names)
        for name, parent in (("old", None), ("new", None), ("middle", "old"), ("below", "middle")):
            add(store, name, parent)
        give_root(store, "below", "below")
        lock = provider_rows.lock_providers

        def after_another_one(*arguments):
            monkeypatch.undo()
            moving_store.write(
                providers.update, uuid_of("middle"), name="middle", parent=uuid_of("new")
            )
            return lock(*arguments)

        monkeypatch.setattr(repairs, "lock_providers", after_another_one)
        assert mend(store, FindingKind.BROKEN_ROOT, provider=uuid_of("below")) is RepairResult.DONE
        assert root_of(store, "below") == root_of(store, "middle") == id_of(store, "new")
        store.close()
        moving_store.close()
