# SPDX-License-Identifier: Apache-2.0
"""Findings about holds, and their repair (contract page 100, section 5)."""

import time
import uuid
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.store.hosts import create_host, make_claim
from treeclaim.model.claim import HoldTerms
from treeclaim.model.extension.audit import FindingKind, RepairResult
from treeclaim.model.provider import Inventory
from treeclaim.store.audit.findings import load_findings
from treeclaim.store.audit.repairs import repair
from treeclaim.store.reading.holds import load_draws, load_holds
from treeclaim.store.schema import tables

HOSTS = sorted(str(uuid.uuid4()) for _ in range(2))
HOLD, TAKER = sorted(str(uuid.uuid4()) for _ in range(2))
KINDS = (
    FindingKind.AGAINST_UNITS,
    FindingKind.EMPTY_CONSUMER,
    FindingKind.IN_MANY_TREES,
    FindingKind.EXPIRED_HOLD,
    FindingKind.BROKEN_HOLD,
    FindingKind.BROKEN_DRAW,
)


@pytest.fixture
def drawn(store):
    """A hold in two trees that forbid its amounts; all of it on one is drawn."""
    for host in HOSTS:
        create_host(store, {"VCPU": Inventory(8, step_size=3)}, uuid=host)
    terms = HoldTerms(returns=True)
    amounts = dict.fromkeys(HOSTS, 4)
    store.replace_allocations([make_claim(HOLD, amounts, knows_holds=True, hold=terms)])
    store.replace_allocations([make_claim(TAKER, {HOSTS[0]: 3}, from_holds=[HOLD])])
    return store


def found(store):
    """Return the findings of an audit, by kind."""
    every = store.read(load_findings, KINDS, 10, lambda *_: frozenset())
    return {kind: finding.items for kind, finding in every.items() if finding.count}


def by_hand(store, statement):
    """Change the database as another service would."""
    with store.engine.begin() as connection:
        connection.execute(statement)


def mended(store, kind):
    """Mend the findings of a kind, twice; return what became of them."""
    return [repaired(store, kind, item) for item in found(store)[kind] for _ in "ab"]


def repaired(store, kind, item):
    return repair(store, kind, item, ("p", "u"), until=time.monotonic() + 30).result


BOTH = [RepairResult.DONE, RepairResult.GONE]


def test_hold_is_not_reported(drawn):
    assert found(drawn) == {}
    by_hand(drawn, sa.delete(tables.allocations).where(tables.allocations.c.consumer_id == HOLD))
    assert found(drawn) == {}
    empty = {"consumer": HOLD}
    assert repaired(drawn, FindingKind.EMPTY_CONSUMER, empty) is RepairResult.GONE


def test_repair_removes_expired_hold_and_its_draws(drawn):
    ended = drawn.now() - timedelta(minutes=2)
    by_hand(drawn, sa.update(tables.holds).values(ends_at=ended))
    assert found(drawn) == {FindingKind.EXPIRED_HOLD: [{"consumer": HOLD}]}
    assert mended(drawn, FindingKind.EXPIRED_HOLD) == BOTH
    assert drawn.read(load_draws, [TAKER]) == {}


@pytest.mark.parametrize("is_there", [False, True])
def test_repair_removes_terms_without_a_hold(drawn, is_there):
    consumers = tables.consumers
    changed = sa.update(consumers).values(consumer_type_id=None)
    by_hand(
        drawn,
        (changed if is_there else sa.delete(consumers)).where(consumers.c.uuid == HOLD),
    )
    assert found(drawn)[FindingKind.BROKEN_HOLD] == [{"consumer": HOLD}]
    assert mended(drawn, FindingKind.BROKEN_HOLD) == BOTH
    assert FindingKind.BROKEN_HOLD not in found(drawn)
    assert drawn.read(load_holds, [HOLD]) == {}


def test_repair_removes_draw_beyond_used_amount(drawn):
    used = tables.allocations
    by_hand(drawn, sa.update(used).where(used.c.consumer_id == TAKER).values(used=1))
    item = {"consumer": TAKER, "provider": HOSTS[0], "resource_class": "VCPU"}
    assert found(drawn)[FindingKind.BROKEN_DRAW] == [{**item, "drawn": 3, "used": 1}]
    assert drawn.read(load_draws, [TAKER]) == {TAKER: {HOLD: {HOSTS[0]: {"VCPU": 1}}}}
    assert mended(drawn, FindingKind.BROKEN_DRAW) == BOTH
    assert FindingKind.BROKEN_DRAW not in found(drawn)
