# SPDX-License-Identifier: Apache-2.0
"""Random writes of conditions and claims leave the database, and a Forest that follows it, as page 102 says."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from treeclaim.forest.domains.filters import unconditioned
from treeclaim.forest.table.forest import Forest
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    AllocationsNotFoundError,
    CapacityExceededError,
    ConditionedError,
    ConditionNotFoundError,
    InvalidParentError,
    TreeclaimError,
)
from treeclaim.model.extension.conditions import Condition, Effect
from treeclaim.model.inventory import Inventory
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database import transactions
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations import conditions as condition_claims
from treeclaim.store.operations.allocations.placements import PlacementRefusedError
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.providers import conditions, inventories, providers
from treeclaim.store.reading.providers.conditions import condition_of
from treeclaim.store.schema import tables

CONSUMERS = [f"c0000000-0000-0000-0000-{number:012}" for number in range(4)]
NEWCOMERS = [f"d0000000-0000-0000-0000-{number:012}" for number in range(2)]
PROVIDERS = [f"a0000000-0000-0000-0000-{number:012}" for number in range(5)]
PARENTS = [None, 0, 1, 0, None]
CLASSES = ("VCPU", "MEMORY_MB")
TOTAL = 6
KEYS = ("CLEANING", "ONCE")
START = datetime(2026, 1, 1)  # noqa: DTZ001 - as the tables hold it

AMOUNTS = st.dictionaries(
    st.tuples(st.sampled_from(PROVIDERS), st.sampled_from(CLASSES)),
    st.integers(1, 3),
    min_size=1,
    max_size=3,
)
TOLERATED = st.sets(st.sampled_from(KEYS), max_size=1)
TERMS = st.sampled_from(
    [
        {},
        {"effect": Effect.LEAVE},
        {"on_use": True, "began": False},
        {"on_use": True, "began": False},
        {"on_use": True},
        {"until": 2},
    ]
)


class Clock:
    """The clock of the database, as the tests set it."""

    time = START

    @classmethod
    def now(cls, _connection):
        """The present time."""
        return cls.time


class Model:
    """The page, as plainly as can be."""

    def __init__(self):
        self.parents = {
            uuid: None if above is None else PROVIDERS[above]
            for uuid, above in zip(PROVIDERS, PARENTS, strict=True)
        }
        self.conditions = {}
        self.held = {}

    def below(self, head):
        """A provider and all below it."""
        return {uuid for uuid in PROVIDERS if head in list(self.above(uuid))}

    def above(self, uuid):
        """A provider and all above it."""
        while uuid is not None:
            yield uuid
            uuid = self.parents[uuid]

    def present(self):
        """The conditions that have not ended, in the order in which they are told."""
        return {
            place: condition
            for place, condition in sorted(self.conditions.items(), key=lambda pair: pair[0])
            if condition.until is None or condition.until > Clock.time
        }

    def more(self, claims, head, without=()):
        """Whether consumers use more of a class at and below a provider than before."""
        change = Counter()
        for consumer, amounts, _ in claims:
            if consumer not in without:
                for (provider, name), amount in amounts.items():
                    change[name] += amount * (provider in self.below(head))
                for (provider, name), amount in self.held.get(consumer, {}).items():
                    change[name] -= amount * (provider in self.below(head))
        return any(amount > 0 for amount in change.values())

    def write(self, *parts):
        """Write some requests as one; return why not."""
        held, begins = dict(self.held), []
        for claims in parts:
            for (head, key), condition in self.present().items():
                tolerant = {consumer for consumer, _, tolerated in claims if key in tolerated}
                if condition.began and self.more(claims, head, tolerant):
                    return f"condition {head} {key}"
                if not condition.began and self.more(claims, head):
                    begins.append((head, key))
            held |= {consumer: amounts for consumer, amounts, _ in claims}
            used, before = Counter(), Counter()
            for sums, some in ((used, held), (before, self.held)):
                for amounts in some.values():
                    sums.update(amounts)
            if any(used[key] > max(TOTAL, before[key]) for key in used):
                return "capacity"
        for head, key in begins:
            self.conditions[head, key] = began(self.conditions[head, key])
        self.held = {consumer: amounts for consumer, amounts in held.items() if amounts}
        return None


def began(condition):
    """The same condition, begun."""
    return Condition(condition.key, condition.effect, on_use=True, reason=condition.reason)


def said(error):
    """A refusal, in a word."""
    if isinstance(error, ConditionedError):
        return f"condition {error.provider_uuid} {error.key}"
    if isinstance(error, PlacementRefusedError):
        return said(error.__cause__)
    return "capacity" if isinstance(error, CapacityExceededError) else repr(error)


class Writes(RuleBasedStateMachine):
    """One write after the other, to the database and to the model."""

    store: Any

    def __init__(self):
        super().__init__()
        self.model = Model()
        clear(self.store)
        self.forest = Forest()
        self.cursor = None
        self.follow()

    def follow(self):
        """Bring the Forest up to date."""
        changes = self.store.changes(self.cursor)
        if changes is not None:
            assert self.cursor is None or self.forest.agrees_with(changes)
            self.forest.apply(changes)
            self.cursor = changes.cursor

    def claim(self, consumer, amounts, tolerated):
        """A claim as the store takes it."""
        allocations = {}
        for (provider, name), amount in amounts.items():
            allocations.setdefault(provider, {})[name] = amount
        return ConsumerClaim(consumer, allocations, "p", "u", tolerates=frozenset(tolerated))

    def both(self, expected, write, *arguments):
        """Write, and compare what is said."""
        try:
            write(*arguments)
        except TreeclaimError as error:
            assert said(error) == expected
        else:
            assert expected is None

    @initialize(place=st.sampled_from(PROVIDERS[:2]))
    def arm(self, place):
        """There is something that waits for its first use."""
        self.put(place, "ONCE", {"on_use": True, "began": False})

    @rule(
        provider=st.sampled_from([PROVIDERS[0], *PROVIDERS]),
        key=st.sampled_from(KEYS),
        terms=TERMS,
    )
    def put(self, provider, key, terms):
        """PUT of a condition."""
        terms = dict(terms)
        if "until" in terms:
            terms["until"] = Clock.time + timedelta(seconds=terms["until"])
        condition = Condition(key, **({"effect": Effect.NO_NEW} | terms))
        self.store.write(conditions.put, provider, condition)
        self.model.conditions[provider, key] = condition

    @rule(provider=st.sampled_from(PROVIDERS), key=st.sampled_from(KEYS))
    def delete(self, provider, key):
        """DELETE of a condition."""
        is_there = (provider, key) in self.model.present()
        try:
            self.store.write(conditions.delete, provider, key)
        except ConditionNotFoundError:
            assert not is_there
        else:
            assert is_there
            del self.model.conditions[provider, key]

    @rule(
        claims=st.dictionaries(
            st.sampled_from(CONSUMERS),
            st.tuples(st.one_of(AMOUNTS, AMOUNTS, st.just({})), TOLERATED),
            min_size=1,
            max_size=3,
        )
    )
    def replace(self, claims):
        """PUT and POST of allocations."""
        given = [(consumer, *rest) for consumer, rest in claims.items()]
        expected = self.model.write(given)
        self.both(expected, self.store.replace_allocations, [self.claim(*one) for one in given])

    @rule(consumer=st.sampled_from(CONSUMERS))
    def hand_over(self, consumer):
        """What a consumer has goes to another one, as Nova does it."""
        other = CONSUMERS[(CONSUMERS.index(consumer) + 1) % len(CONSUMERS)]
        given = [(consumer, {}, ()), (other, self.model.held.get(consumer, {}), ())]
        expected = self.model.write(given)
        self.both(expected, self.store.replace_allocations, [self.claim(*one) for one in given])

    @rule(consumer=st.sampled_from(CONSUMERS))
    def release(self, consumer):
        """DELETE of allocations, which no condition refuses."""
        try:
            self.store.delete_allocations(consumer)
        except AllocationsNotFoundError:
            assert consumer not in self.model.held
        else:
            del self.model.held[consumer]

    @rule(amounts=st.lists(st.tuples(AMOUNTS, TOLERATED), min_size=2, max_size=2))
    def place(self, amounts):
        """Placements of two consumers in one write."""
        given = [
            (consumer, *some)
            for consumer, some in zip(NEWCOMERS, amounts, strict=True)
            if consumer not in self.model.held
        ]
        if given:
            expected = self.model.write(*([one] for one in given))
            claims = [self.claim(*one) for one in given]
            self.both(expected, self.store.place, claims)
            for consumer, *_ in given:
                if consumer in self.model.held:
                    self.store.delete_allocations(consumer)
                    del self.model.held[consumer]

    @rule(
        amounts=st.lists(st.tuples(AMOUNTS, TOLERATED), min_size=2, max_size=3),
        arms=st.booleans(),
    )
    def group(self, amounts, arms):
        """Requests of several clients in one transaction are as one after the other."""
        if arms:
            self.put(PROVIDERS[0], "ONCE", {"on_use": True, "began": False})
        given = [(consumer, *some) for consumer, some in zip(CONSUMERS, amounts, strict=False)]
        requests = [ClaimRequest([self.claim(*one)]) for one in given]
        try:
            refusals = self.store.write(claim_writes.write_group, requests)
        except claim_writes.AllRefusedError as error:
            refusals = error.refusals
        for one, refusal in zip(given, refusals, strict=True):
            expected = self.model.write([one])
            assert (None if refusal is None else said(refusal)) == expected

    @rule(provider=st.sampled_from(PROVIDERS), parent=st.sampled_from([None, *PROVIDERS]))
    def move(self, provider, parent):
        """PUT of a provider with another parent."""
        try:
            self.store.write(providers.update, provider, name=provider, parent=parent)
        except InvalidParentError:
            assert parent in self.model.below(provider)
        else:
            self.model.parents[provider] = parent

    @rule()
    def wait(self):
        """Time goes on, and nobody asks."""
        Clock.time += timedelta(seconds=1)

    @rule()
    def remove_ended(self):
        """What a worker does when the time of a condition has come."""
        ids = {row.uuid: row.id for row in self.store.read(all_providers)}
        named = [(ids[provider], key) for provider, key in self.model.conditions]
        self.store.write(conditions.end, named)
        self.model.conditions = self.model.present()

    @invariant()
    def all_are_equal(self):
        """The database, the Forest that follows it, and the page say the same."""
        stored = self.store.read(all_conditions)
        # What a PUT replaced is gone; what has ended stays until it is removed.
        assert {place: stored[place] for place in self.model.present()} == self.model.present()
        self.follow()
        known = {
            (record.uuid, condition.key): condition
            for record in self.forest.records()
            for condition in record.links["conditions"]
        }
        assert known == stored
        for tolerated in ((), KEYS[:1]):
            barred = {
                uuid
                for (head, _), condition in stored.items()
                if condition.began and condition.key not in tolerated
                for uuid in self.model.below(head)
            }
            asked = ProviderConditions(tolerates=frozenset(tolerated))
            rows = unconditioned(self.forest, asked, self.forest.living_rows, ())
            assert {self.forest.uuid_of(row) for row in rows} == set(PROVIDERS) - barred


def all_providers(transaction):
    """Ids and uuids."""
    table = tables.resource_providers.c
    return transaction.rows(sa.select(table.id, table.uuid))


def all_conditions(transaction):
    """The conditions that are stored, by provider and key."""
    uuids = {row.id: row.uuid for row in all_providers(transaction)}
    rows = transaction.rows(sa.select(tables.conditions))
    return {(uuids[row.resource_provider_id], row.name): condition_of(row) for row in rows}


def clear(store):
    """Remove all consumers and conditions, and put all providers in their places."""
    with store.engine.begin() as connection:
        for table in (tables.allocations, tables.consumers, tables.conditions):
            connection.execute(sa.delete(table))
    for provider in PROVIDERS:
        store.write(providers.update, provider, name=provider, parent=None)
    for provider, above in zip(PROVIDERS, PARENTS, strict=True):
        if above is not None:
            parent = PROVIDERS[above]
            store.write(providers.update, provider, name=provider, parent=parent)


@pytest.mark.slow
def test_random_writes_leave_what_the_page_says(store, monkeypatch):
    live_through(store, monkeypatch, examples=10)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_many_more_random_writes_do(store, monkeypatch, part):
    live_through(store, monkeypatch, examples=50)


def live_through(store, monkeypatch, examples):
    """Try random histories of writes."""
    for provider in PROVIDERS:
        store.write(providers.create, uuid=provider, name=provider, parent_uuid=None)
        stock = {name: Inventory(TOTAL) for name in CLASSES}
        store.write(inventories.replace_all, provider, 0, stock, zero_capacity_allowed=True)
    Clock.time = START
    for module in (transactions, condition_claims, conditions):
        monkeypatch.setattr(module, "now_of", Clock.now)
    writes = type("WritesHere", (Writes,), {"store": store})
    run_state_machine_as_test(
        writes,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            report_multiple_bugs=False,
        ),
    )
