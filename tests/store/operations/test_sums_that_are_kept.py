# SPDX-License-Identifier: Apache-2.0
"""Sums over very many allocations are kept by each process, and no claim is judged by less than there is."""

import random
import uuid
from contextlib import closing

import pytest
import sqlalchemy as sa

from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import CapacityExceededError
from treeclaim.model.inventory import Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.feed import sums
from treeclaim.store.operations.allocations import capacity
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.providers import inventories, providers
from treeclaim.store.schema.tables import allocations, resource_providers, streams

TOTAL = 30
CLASSES = ("VCPU", "DISK_GB")


@pytest.fixture(autouse=True)
def all_are_many(monkeypatch):
    """Every sum is kept."""
    monkeypatch.setattr(capacity, "MANY_ALLOCATIONS", 0)


@pytest.fixture
def other(store, database_url):
    """Another process."""
    with closing(Store(DatabaseSettings(database_url))) as made:
        yield made


def made_provider(store, provider=None):
    provider = provider or str(uuid.uuid4())
    store.write(providers.create, uuid=provider, name=provider, parent_uuid=None)
    stock = dict.fromkeys(CLASSES, Inventory(TOTAL))
    store.write(inventories.replace_all, provider, 0, stock, zero_capacity_allowed=False)
    return provider


def claim(store, amounts, consumer=None, generation=None):
    consumer = consumer or str(uuid.uuid4())
    claims = [ConsumerClaim(consumer, amounts, "project", "user", generation, "INSTANCE")]
    store.write(claim_writes.replace, claims)
    return consumer


def used_of(store, provider, name="VCPU"):
    """What the database adds up."""
    statement = sa.text(
        "SELECT COALESCE(SUM(used), 0) FROM allocations"
        " JOIN resource_providers p ON p.id = resource_provider_id"
        " JOIN resource_classes c ON c.id = resource_class_id"
        " WHERE p.uuid = :provider AND c.name = :name"
    )
    with store.engine.connect() as connection:
        return int(connection.execute(statement, {"provider": provider, "name": name}).scalar())


def claimed_beside(store, provider, amount):
    """Claim as another program does: nothing in the feed, but the generation is raised."""
    of_provider = sa.select(resource_providers.c.id).where(resource_providers.c.uuid == provider)
    with store.engine.begin() as connection:
        connection.execute(
            sa.insert(allocations).values(
                resource_provider_id=of_provider.scalar_subquery(),
                resource_class_id=sa.text("(SELECT id FROM resource_classes WHERE name = 'VCPU')"),
                consumer_id=str(uuid.uuid4()),
                used=amount,
            )
        )
        connection.execute(
            sa.update(resource_providers)
            .where(resource_providers.c.uuid == provider)
            .values(generation=resource_providers.c.generation + 1)
        )


def released_beside(store, consumer):
    """Release as another program does: nothing in the feed, and no generation is raised."""
    with store.engine.begin() as connection:
        connection.execute(sa.delete(allocations).where(allocations.c.consumer_id == consumer))


def statements_of(store, call):
    """The SQL that a call sends."""
    sent = []

    def note(_connection, _cursor, statement, *_):
        sent.append(statement)

    sa.event.listen(store.engine, "before_cursor_execute", note)
    try:
        call()
    finally:
        sa.event.remove(store.engine, "before_cursor_execute", note)
    return sent


def adds_up(statements):
    return any("sum(" in statement.lower() for statement in statements)


def test_the_second_claim_adds_up_nothing_whoever_made_the_first(store, other):
    provider = made_provider(store)
    first, second = ({provider: dict.fromkeys(names, 1)} for names in (CLASSES, CLASSES[:1]))
    assert adds_up(statements_of(store, lambda: claim(store, first)))
    assert not adds_up(statements_of(store, lambda: claim(store, first)))
    consumer = claim(other, second)
    assert not adds_up(statements_of(store, lambda: claim(store, second)))
    other.write(claim_writes.delete, consumer)
    assert not adds_up(statements_of(store, lambda: claim(store, first)))
    assert used_of(store, provider) == 4


def test_few_allocations_are_added_up_each_time(store, monkeypatch):
    monkeypatch.setattr(capacity, "MANY_ALLOCATIONS", 3)
    provider = made_provider(store)
    seen = [statements_of(store, lambda: claim(store, {provider: {"VCPU": 1}})) for _ in range(5)]
    assert [adds_up(statements) for statements in seen] == [True] * 4 + [False]
    assert len({len(statements) for statements in seen[1:3]}) == 1


@pytest.mark.parametrize("is_told_of_later", [False, True])
def test_what_another_program_claims_is_counted(store, other, is_told_of_later):
    provider = made_provider(store)
    for _ in range(2):
        claim(store, {provider: {"VCPU": 1}})
    claimed_beside(store, provider, TOTAL - 4)
    claim(other if is_told_of_later else store, {provider: {"VCPU": 1}})
    claim(store, {provider: {"VCPU": 1}})
    with pytest.raises(CapacityExceededError):
        claim(store, {provider: {"VCPU": 1}})
    assert used_of(store, provider) == TOTAL


def test_a_group_is_judged_by_what_it_has_accepted_where_the_sum_turns_out_less(store):
    provider = made_provider(store)
    released_beside(store, claim(store, {provider: {"VCPU": 20}}))
    claim(store, {provider: {"VCPU": 5}})
    released_beside(store, claim(store, {provider: {"VCPU": 20}}))
    requests = [
        ClaimRequest(
            [
                ConsumerClaim(
                    str(uuid.uuid4()), {provider: {"VCPU": amount}}, "project", "user", None, "VM"
                )
            ]
        )
        for amount in (4, 20, 2, 1)
    ]
    refusals = store.write(claim_writes.write_group, requests)
    assert [type(refusal) for refusal in refusals] == [
        type(None),
        type(None),
        CapacityExceededError,
        type(None),
    ]
    assert used_of(store, provider) == TOTAL


def test_what_another_program_releases_can_be_claimed(store):
    provider = made_provider(store)
    consumer = claim(store, {provider: {"VCPU": TOTAL - 1}})
    claim(store, {provider: {"VCPU": 1}})
    released_beside(store, consumer)
    with pytest.raises(CapacityExceededError) as refused:
        claim(store, {provider: {"VCPU": TOTAL}})
    assert refused.value.free == TOTAL - 1
    claim(store, {provider: {"VCPU": TOTAL - 1}})


def test_a_provider_that_is_made_again_begins_with_nothing(store, other):
    provider = made_provider(store)
    consumers = [claim(store, {provider: {"VCPU": 1}}) for _ in range(2)]
    for consumer in consumers:
        other.write(claim_writes.delete, consumer)
    other.write(providers.delete, provider)
    made_provider(other, provider)
    claim(other, {provider: {"VCPU": TOTAL - 1}})
    claim(other, {provider: {"VCPU": 1}})
    with pytest.raises(CapacityExceededError):
        claim(store, {provider: {"VCPU": 1}})


def test_a_restored_database_is_not_judged_by_what_was_lost(store, other):
    provider = made_provider(store)
    for _ in range(2):
        claim(store, {provider: {"VCPU": 1}})
    tables = (streams, allocations, resource_providers)
    with store.engine.begin() as connection:
        saved = [connection.execute(sa.select(table)).mappings().all() for table in tables]
    claim(store, {provider: {"VCPU": 1}})
    claim(store, {provider: {"DISK_GB": 1}})
    with store.engine.begin() as connection:
        for table, rows in zip(tables, saved, strict=True):
            if table is resource_providers:
                for row in rows:
                    connection.execute(
                        sa.update(table).where(table.c.id == row["id"]).values(**row)
                    )
                continue
            connection.execute(sa.delete(table))
            connection.execute(sa.insert(table), [dict(row) for row in rows])
    claim(other, {provider: {"VCPU": TOTAL - 3}})
    claim(other, {provider: {"DISK_GB": 1}})
    claim(store, {provider: {"VCPU": 1}})
    with pytest.raises(CapacityExceededError):
        claim(store, {provider: {"VCPU": 1}})
    assert used_of(store, provider) == TOTAL


@pytest.mark.parametrize("moment", ["stream_rows", "counted_since"])
def test_what_is_released_while_the_feed_is_read_is_counted_once(
    store, other, moment, monkeypatch
):
    if store.engine.dialect.name == "sqlite":
        pytest.skip("one writes at a time")
    provider = made_provider(store)
    consumers = [claim(store, {provider: {"VCPU": 10}}) for _ in range(2)]
    if moment == "stream_rows":
        # The sum is read anew, and the positions after it.
        monkeypatch.setattr(sums, "_MOST_STEPS", 0)
    claim(other, {provider: {"VCPU": 1}})
    inner = getattr(sums, moment)

    def late(*args):
        if len(consumers) == 2:
            other.write(claim_writes.delete, consumers.pop())
        return inner(*args)

    monkeypatch.setattr(sums, moment, late)
    claim(store, {provider: {"VCPU": 1}})
    monkeypatch.setattr(sums, moment, inner)
    monkeypatch.setattr(sums, "_MOST_STEPS", 1000)
    claim(store, {provider: {"VCPU": TOTAL - used_of(store, provider)}})
    with pytest.raises(CapacityExceededError):
        claim(store, {provider: {"VCPU": 1}})
    assert used_of(store, provider) == TOTAL


def test_a_claim_that_is_not_committed_leaves_no_sum(store):
    provider = made_provider(store)
    claim(store, {provider: {"VCPU": 1}})

    def fail(transaction):
        for _ in range(2):
            given = {provider: {"VCPU": 9}}
            claim_writes.replace(
                transaction,
                [ConsumerClaim(str(uuid.uuid4()), given, "project", "user", None, "INSTANCE")],
            )
        raise CapacityExceededError(provider, "VCPU", requested=1, free=0)

    with pytest.raises(CapacityExceededError):
        store.write(fail)
    claimed_beside(store, provider, 12)
    with pytest.raises(CapacityExceededError):
        claim(store, {provider: {"VCPU": TOTAL - 12}})


class Story:
    """Random writes of two processes and another program; each answer is what the rows say."""

    def __init__(self, chance, stores):
        self.chance, self.stores = chance, stores
        self.providers = [made_provider(stores[0]) for _ in range(2)]
        self.held = {}

    def step(self):
        """Do something at random."""
        steps = (self.claim, self.claim, self.claim, self.shrink, self.release, self.beside)
        self.chance.choice((*steps, *steps, self.released_beside, self.prune, self.make_again))()

    def claim(self, consumer=None):
        """Claim what fits or does not."""
        store = self.chance.choice(self.stores)
        before = self.held.get(consumer, ({}, None))
        amounts = {
            provider: {
                name: self.chance.randint(1, 8)
                for name in self.chance.sample(CLASSES, self.chance.randint(1, 2))
            }
            for provider in self.chance.sample(self.providers, self.chance.randint(1, 2))
        }
        fits = all(
            used_of(store, provider, name) - old + amount <= TOTAL or amount <= old
            for provider, given in amounts.items()
            for name, amount in given.items()
            for old in [before[0].get(provider, {}).get(name, 0)]
        )
        try:
            consumer = claim(store, amounts, consumer, before[1])
        except CapacityExceededError:
            assert not fits
        else:
            assert fits
            self.held[consumer] = (amounts, (before[1] or 0) + 1)

    def shrink(self):
        """Claim something else for the same consumer."""
        self.claim(self.chance.choice(sorted(self.held)) if self.held else None)

    def release(self):
        """Give back."""
        if self.held:
            consumer = self.chance.choice(sorted(self.held))
            self.chance.choice(self.stores).write(claim_writes.delete, consumer)
            del self.held[consumer]

    def beside(self):
        """Another program claims."""
        provider = self.chance.choice(self.providers)
        if used_of(self.stores[0], provider) <= TOTAL - 2:
            claimed_beside(self.stores[0], provider, 2)

    def released_beside(self):
        """Another program gives back all that it has."""
        mine = [*self.held, ""]
        with self.stores[0].engine.begin() as connection:
            connection.execute(
                sa.delete(allocations).where(allocations.c.consumer_id.not_in(mine))
            )

    def prune(self):
        """Remove what the feed has told so far."""
        with self.stores[0].engine.begin() as connection:
            connection.execute(
                sa.text("UPDATE treeclaim_streams SET pruned_to = position WHERE epoch IS NULL")
            )
            connection.execute(sa.text("DELETE FROM treeclaim_feed"))

    def make_again(self):
        """Delete a provider, and make it once more with the same uuid."""
        self.released_beside()
        for consumer in list(self.held):
            self.stores[1].write(claim_writes.delete, consumer)
        self.held.clear()
        self.stores[1].write(providers.delete, self.providers[0])
        made_provider(self.stores[1], self.providers[0])


@pytest.mark.parametrize("seed", range(4))
def test_every_claim_is_answered_by_what_is_there(store, other, seed, monkeypatch):
    monkeypatch.setattr(sums, "_MOST_STEPS", 7)
    story = Story(random.Random(seed), (store, other))
    for _ in range(150):
        story.step()
