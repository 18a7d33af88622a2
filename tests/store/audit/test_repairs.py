# SPDX-License-Identifier: Apache-2.0
"""Broken trees, and repairs of expired holds and roots; `gabbits/audit.yaml` has the other kinds."""

import time
import uuid
from datetime import timedelta

import sqlalchemy as sa

from tests.store.hosts import create_host, make_claim
from tests.store.takeover.test_check import execute
from treeclaim.model.claim import HoldTerms
from treeclaim.model.extension.audit import FindingKind, RepairResult
from treeclaim.store.audit import repairs
from treeclaim.store.audit.findings import load_findings
from treeclaim.store.feed.news import load_news, load_roots, select_news
from treeclaim.store.reading.holds import load_draws
from treeclaim.store.schema import tables


def by_hand(store, statement):
    """Change the database outside of the service."""
    with store.engine.begin() as connection:
        connection.execute(statement)


def mend(store, kind, **item):
    """Repair one finding; return its result."""
    owner = ("project", "user")
    return repairs.repair(store, kind, item, owner, until=time.monotonic() + 30).result


def test_repair_removes_expired_hold_and_its_draws(store):
    hold, taker = str(uuid.uuid4()), str(uuid.uuid4())
    host = create_host(store, 8)
    terms = HoldTerms(returns=True)
    store.replace_allocations([make_claim(hold, {host: 4}, knows_holds=True, hold=terms)])
    store.replace_allocations([make_claim(taker, {host: 3}, from_holds=[hold])])
    by_hand(
        store, sa.update(tables.holds).values(ends_at=store.read_clock() - timedelta(minutes=2))
    )
    kinds = [FindingKind.EXPIRED_HOLD]
    findings = store.read(load_findings, kinds, 10, lambda *_: frozenset())
    assert findings[FindingKind.EXPIRED_HOLD].items == [{"consumer": hold}]
    results = [mend(store, FindingKind.EXPIRED_HOLD, consumer=hold) for _ in range(2)]
    assert results == [RepairResult.DONE, RepairResult.GONE]
    assert store.read(load_draws, [taker]) == {}


def test_repaired_root_is_reported_to_watchers_of_the_wrong_tree(store):
    right, wrong = create_host(store), create_host(store)
    child = create_host(store, parent=right)
    query = "SELECT id FROM resource_providers WHERE uuid = :uuid"
    root = store.read(lambda transaction: transaction.scalar(query, uuid=wrong))
    providers = tables.resource_providers
    changed = sa.update(providers).where(providers.c.uuid == child)
    by_hand(store, changed.values(root_provider_id=root))
    cursor = store.load_cursor()
    assert mend(store, FindingKind.BROKEN_ROOT, provider=child) is RepairResult.DONE

    def find_changes(transaction, provider):
        news = load_news(transaction, cursor)
        return select_news(transaction, news, load_roots(transaction, [provider])).changes

    for provider in (right, wrong):
        assert store.read(find_changes, provider).keys() == {child}


def test_broken_parents_roots_and_empty_trees_are_found_by_id(store, database_url):
    root = create_host(store, 8)
    names = ("child", "lost", "below lost", "first", "second", "below ring")
    above = (root, root, "lost", root, "first", "second")
    uuids = {root: root}
    for name, parent in zip(names, above, strict=True):
        uuids[name] = create_host(store, name=name, parent=uuids[parent])
    empty = create_host(store)

    def link(name, **ids):
        values = {f"{link}_provider_id": id_ for link, id_ in ids.items()}
        return sa.update(providers).where(providers.c.uuid == uuids[name]).values(**values)

    providers = tables.resource_providers
    with store.engine.connect() as connection:
        rows = connection.execute(sa.select(providers.c.uuid, providers.c.id)).all()
    ids = dict(tuple(row) for row in rows)
    by_hand(store, link("child", root=ids[uuids["child"]]))
    by_hand(store, link("first", parent=ids[uuids["second"]]))
    execute(
        database_url,
        f"UPDATE resource_providers SET parent_provider_id = 99999 WHERE uuid = '{uuids['lost']}'",
    )
    kinds = [FindingKind.BROKEN_PARENT, FindingKind.BROKEN_ROOT, FindingKind.EMPTY_TREE]
    findings = store.read(load_findings, kinds, 10, lambda *_: frozenset())
    # A provider below a broken provider has no topmost ancestor that its root could differ from.
    broken = [{"provider": uuids[name]} for name in ("lost", "first", "second")]
    assert findings[FindingKind.BROKEN_PARENT].items == broken
    assert findings[FindingKind.BROKEN_ROOT].items == [{"provider": uuids["child"]}]
    # By its root, the child is a separate tree.
    assert findings[FindingKind.EMPTY_TREE].items == [{"uuid": uuids["child"]}, {"uuid": empty}]
