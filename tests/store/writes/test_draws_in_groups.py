# SPDX-License-Identifier: Apache-2.0
"""Many who draw from one hold are one transaction, and readers of the feed are told (page 100)."""

import uuid

import pytest
import sqlalchemy as sa

from tests.store.hosts import create_host, make_claim
from treeclaim.model.errors import CapacityExceededError, HoldRefusedError
from treeclaim.model.extension.holds import HoldTerms
from treeclaim.model.parts import Part
from treeclaim.store.operations.allocations import claims
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.reading.allocations import of_consumer
from treeclaim.store.schema import tables

CLIENTS = 16
HOST, HOLD, *TAKERS = sorted(str(uuid.uuid4()) for _ in range(CLIENTS + 2))


def claim(consumer, amount, generation=None, **more):
    return make_claim(consumer, {HOST: amount}, generation, knows_holds=True, **more)


@pytest.fixture(params=[True, False], ids=["returns", "does not return"])
def held(request, store):
    """A host that one hold has for itself."""
    create_host(store, 2 * CLIENTS, uuid=HOST)
    store.replace_allocations([claim(HOLD, 2 * CLIENTS, hold=HoldTerms(returns=request.param))])
    return store


def statements(store, work):
    """Return the number of statements of a call."""
    sent = []

    def note(_connection, _cursor, statement, *_):
        sent.append(statement)

    sa.event.listen(store.engine, "before_cursor_execute", note)
    result = work()
    sa.event.remove(store.engine, "before_cursor_execute", note)
    return result, len(sent)


def drawing(*takers):
    return [ClaimRequest([claim(taker, 1, from_holds=[HOLD])]) for taker in takers]


def test_number_of_draws_does_not_raise_statement_count(held):
    first = drawing(*TAKERS[:2])
    refusals, for_two = statements(held, lambda: held.write(claims.write_group, first))
    assert refusals == [None, None]
    others = drawing(*TAKERS[2:])
    refusals, for_many = statements(held, lambda: held.write(claims.write_group, others))
    assert refusals == [None] * (CLIENTS - 2)
    assert for_many <= for_two
    left = held.read(of_consumer, HOLD)
    assert left.by_provider[HOST].resources == {"VCPU": CLIENTS}
    assert left.generation == 1 + CLIENTS


def test_remainder_of_a_hold_goes_to_the_first_of_a_group(held):
    greedy = [
        ClaimRequest([claim(taker, amount, from_holds=[HOLD])])
        for taker, amount in zip(TAKERS, (CLIENTS, CLIENTS, 1), strict=False)
    ]
    *written, last = held.write(claims.write_group, greedy)
    assert written == [None, None]
    # A hold that returns is there without room; the other one has ended.
    terms = held.read(lambda transaction: transaction.rows(sa.select(tables.holds.c.returns)))
    assert type(last) is (CapacityExceededError if terms else HoldRefusedError)


def test_feed_reports_provider_whose_hold_changed(held):
    held.replace_allocations([claim(TAKERS[0], 2, from_holds=[HOLD])])
    position = sa.select(sa.func.max(tables.feed.c.position))
    asked = sa.select(tables.feed.c.parts, tables.feed.c.amounts)
    before = held.read(lambda transaction: transaction.scalar(position))
    held.delete_allocations(TAKERS[0])
    after = held.read(lambda transaction: transaction.rows(asked.order_by(tables.feed.c.position)))
    assert held.read(lambda transaction: transaction.scalar(position)) > before
    assert Part(after[-1].parts) is Part.ALLOCATIONS


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
    vcpu = held.read(of_consumer, HOLD).by_provider[HOST].resources["VCPU"]
    assert not drawn
    assert vcpu in (2 * CLIENTS - 4, 2 * CLIENTS - 3)
    rows = held.read(lambda transaction: transaction.rows(sa.select(used.c.used)))
    assert sum(row.used for row in rows) <= 2 * CLIENTS
