# SPDX-License-Identifier: Apache-2.0
"""Random writes with holds leave the database as the definition says (`tests.reference.holds`)."""

from datetime import datetime, timedelta
from functools import partial
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

from tests.reference.holds import HOLD, Claim, Model
from treeclaim.model.claim import ConsumerClaim, Generation, ReshapedInventory
from treeclaim.model.errors import (
    AllocationsNotFoundError,
    CapacityExceededError,
    ConsumerExistsError,
    ConsumerGenerationConflictError,
    HoldMisusedError,
    HoldRefusedError,
    TreeclaimError,
    UnitConstraintError,
)
from treeclaim.model.extension.holds import HoldTerms
from treeclaim.model.inventory import Inventory
from treeclaim.store.database import transactions
from treeclaim.store.operations import reshaper
from treeclaim.store.operations.allocations import claims as claim_writes
from treeclaim.store.operations.allocations import holds as hold_writes
from treeclaim.store.operations.allocations import locking
from treeclaim.store.operations.allocations.placements import PlacementRefusedError
from treeclaim.store.operations.allocations.requests import ClaimRequest, PlacedMeanwhileError
from treeclaim.store.operations.providers import inventories, providers
from treeclaim.store.reading.holds import drawn_by, holds_among
from treeclaim.store.schema import tables

CONSUMERS = [f"c0000000-0000-0000-0000-{number:012}" for number in range(6)]
PROVIDERS = [f"a0000000-0000-0000-0000-{number:012}" for number in range(2)]
STOCKS = {"VCPU": Inventory(12), "MEMORY_MB": Inventory(8, step_size=2)}
KEYS = [(provider, name) for provider in PROVIDERS for name in STOCKS]
START = datetime(2026, 1, 1)  # noqa: DTZ001 - as the tables hold it

WORDS = {
    ConsumerGenerationConflictError: "generation",
    AllocationsNotFoundError: "nothing",
    PlacedMeanwhileError: "placed",
    ConsumerExistsError: "exists",
    HoldMisusedError: "misused",
    UnitConstraintError: "units",
    CapacityExceededError: "capacity",
}

HOLDS, OTHERS = CONSUMERS[:3], CONSUMERS[3:]
"""Who is a hold, and who is none, in most writes."""

TERMS = st.fixed_dictionaries(
    {
        "until": st.sampled_from([None, None, 3, 9]),
        "returns": st.sampled_from([True, True, True, False]),
        "projects": st.sampled_from([["p", "q"], ["p"], []]),
    }
)


def amounts_of(draw, most):
    """Amounts, nearly all of them in steps."""
    amounts = draw(st.dictionaries(st.sampled_from(KEYS), st.integers(1, most), max_size=3))
    odd = draw(st.integers(0, 19)) == 7
    return {
        key: amount if odd else -(-amount // STOCKS[key[1]].step_size) * STOCKS[key[1]].step_size
        for key, amount in amounts.items()
    }


@st.composite
def several_claims(draw, most=3):
    """Claims of different consumers; nobody draws from a consumer of the write."""
    # So that most histories have something to draw, and somebody who does.
    pool = draw(st.sampled_from([*[OTHERS] * 8, CONSUMERS, HOLDS]))
    named = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=most, unique=True))
    sources = [uuid for uuid in HOLDS if uuid not in named] or OTHERS[:1]
    return [draw(claim_for(consumer, sources)) for consumer in named]


@st.composite
def claim_for(draw, consumer, sources):
    """A claim of a consumer; one in ten mistakes who it is."""
    is_hold = (consumer in HOLDS) != (draw(st.integers(0, 9)) == 7)
    knows = draw(st.integers(0, 4)) != 4
    terms = draw(st.one_of(TERMS, TERMS, st.none())) if is_hold and knows else None
    drawn = draw(st.lists(st.sampled_from(sources), min_size=1, max_size=2, unique=True))
    return Claim(
        consumer,
        amounts_of(draw, 6 if is_hold else 4),
        draw(st.sampled_from("pppq")),
        draw(st.sampled_from([*["actual"] * 7, "unchecked", None])),
        HOLD if is_hold else "INSTANCE",
        knows,
        terms,
        drawn if knows and not is_hold else [],
    )


def word_of(error):
    """A refusal, as the definition calls it."""
    if isinstance(error, HoldRefusedError):
        return f"{error.reason} {error.uuid}"
    return None if error is None else WORDS[type(error)]


class Writes(RuleBasedStateMachine):
    """One write after the other, to the database and to the definition."""

    store: Any

    def __init__(self):
        super().__init__()
        self.model = Model({key: STOCKS[key[1]].total for key in KEYS}, steps_of_classes())
        clear(self.store)

    @property
    def now(self):
        """The database's clock."""
        return Clock.time

    def claim(self, given):
        """A claim as the store takes it; the model's gets its generation and end."""
        if given.generation == "actual":
            known = self.model.consumers.get(given.consumer)
            given.generation = known["generation"] if known else None
        if given.hold is not None:
            seconds = given.hold["until"]
            until = None if seconds is None else self.now + timedelta(seconds=seconds)
            given.hold = {**given.hold, "until": until}
        allocations = {}
        for (provider, name), amount in given.amounts.items():
            allocations.setdefault(provider, {})[name] = amount
        unchecked = given.generation == "unchecked"
        return ConsumerClaim(
            given.consumer,
            allocations,
            given.project,
            "user",
            Generation.UNCHECKED if unchecked else given.generation,
            given.type,
            knows_holds=given.knows_holds,
            hold=given.hold and terms_of(given.hold),
            from_holds=given.sources,
        )

    def both(self, claims, kind, write, *, makes_room=False):
        """Write to both, and compare what they say.

        Some writes that find no room are made again when all holds are removed whose time is over.
        """
        try:
            write()
        except PlacementRefusedError as error:
            said = word_of(error.__cause__)
        except TreeclaimError as error:
            said = word_of(error)
        else:
            said = None
        expected = self.model.write(claims, self.now, kind)
        if expected == "capacity" and makes_room:
            self.model.expire(self.now)
            expected = self.model.write(claims, self.now, kind)
        assert said == expected

    def replaced(self, claims, given):
        """Replace allocations in both; how old a look for such holds is depends on the real time."""
        self.store._look_for_ends = None
        write = partial(self.store.replace_allocations, given)
        self.both(claims, "write", write, makes_room=True)

    @initialize()
    def begin_with_holds(self):
        """There is something to draw from the beginning."""
        terms = {"until": None, "returns": True, "projects": ["p", "q"]}
        amounts = {KEYS[0]: 5, KEYS[1]: 2, KEYS[2]: 3}
        claims = [
            Claim(uuid, dict(amounts), "p", "actual", HOLD, True, dict(terms))
            for uuid in HOLDS[:2]
        ]
        self.replace(claims)

    @rule(claims=several_claims())
    def replace(self, claims):
        """PUT and POST /allocations."""
        given = [self.claim(claim) for claim in claims]
        self.replaced(claims, given)

    @rule(consumer=st.sampled_from([*HOLDS, *OTHERS, *OTHERS]))
    def delete(self, consumer):
        """DELETE /allocations."""
        claims = [Claim(consumer, {}, "", knows_holds=False)]
        self.both(claims, "release", lambda: self.store.delete_allocations(consumer))

    @rule(claims=several_claims())
    def reshape(self, claims):
        """POST /reshaper, with inventories as they are."""
        given = [self.claim(claim) for claim in claims]
        for claim in claims:
            claim.sources = []
        given = [without_sources(claim) for claim in given]
        provider = tables.resource_providers.c
        asked = sa.select(provider.generation).where(provider.uuid == PROVIDERS[0])
        generation = self.store.read(lambda transaction: transaction.scalar(asked))
        reshaped = [ReshapedInventory(PROVIDERS[0], generation, STOCKS)]
        self.both(claims, "reshape", lambda: self.store.write(reshaper.reshape, reshaped, given))

    @rule(claims=several_claims())
    def place(self, claims):
        """POST /treeclaim/placements."""
        for claim in claims:
            claim.generation, claim.knows_holds = None, True
            claim.amounts = claim.amounts or {KEYS[0]: 1}
            claim.type = HOLD if claim.hold else "INSTANCE"
        given = [self.claim(claim) for claim in claims]
        units = any(c.amounts[k] % steps_of_classes()[k] for c in claims for k in c.amounts)
        if units and len(claims) > 1:
            # Which of several refusals is told depends on the consumer, not on the kind.
            return
        self.both(claims, "place", lambda: self.store.place(given))

    @rule(claims=several_claims())
    def group(self, claims):
        """Requests of several clients in one transaction are as one after the other."""
        given = [self.claim(claim) for claim in claims]
        requests = [ClaimRequest([claim]) for claim in given]
        ended = [
            hold
            for claim in claims
            for hold in self.model.locked_by([claim])
            if hold in self.model.holds
        ]
        self.model.expire(self.now, {*ended, None})
        try:
            said = self.store.write(claim_writes.write_group, requests)
        except locking.ApartError:
            for claim, request in zip(claims, given, strict=True):
                self.replaced([claim], [request])
            return
        except claim_writes.AllRefusedError as error:
            said = error.refusals
        for claim, refusal in zip(claims, said, strict=True):
            assert word_of(refusal) == self.model.write([claim], self.now)

    @rule(holds=st.dictionaries(st.sampled_from(CONSUMERS), TERMS, min_size=1, max_size=2))
    def change_terms(self, holds):
        """POST /treeclaim/holds."""
        given = {}
        for uuid, terms in holds.items():
            until = (
                None if terms["until"] is None else self.now + timedelta(seconds=terms["until"])
            )
            given[uuid] = {"until": until, "returns": terms["returns"]}
        unknown = self.store.write(hold_writes.change_terms, given)
        assert len(given) - len(unknown) == self.model.change_terms(given, self.now)

    @rule(seconds=st.integers(1, 2))
    def wait(self, seconds):
        """Time goes on, and nobody asks."""
        Clock.time += timedelta(seconds=seconds)

    @rule()
    def remove_ended(self):
        """What a worker does when the time of a hold has come."""
        self.store.write(hold_writes.end, list(self.model.holds))
        self.model.expire(self.now)

    @invariant()
    def both_are_equal(self):
        """What is stored is what the definition has, and no more is used than there is."""
        assert self.store.read(picture) == picture_of(self.model)
        for key in KEYS:
            assert self.model.used(key) <= self.model.capacity[key]


class Clock:
    """The clock of the database, as the tests set it."""

    time = START

    @classmethod
    def now(cls, _connection):
        """The present time."""
        return cls.time


def steps_of_classes():
    """Step sizes by inventory."""
    return {key: STOCKS[key[1]].step_size for key in KEYS}


def terms_of(hold):
    """Terms as the store takes them."""
    return HoldTerms(hold["until"], hold["returns"], tuple(hold["projects"]), "ä \x00 🦆")


def without_sources(claim):
    """A claim that draws from nothing."""
    return ConsumerClaim(
        claim.consumer_uuid,
        claim.allocations,
        claim.project_id,
        claim.user_id,
        claim.generation,
        claim.consumer_type,
        claim.knows_holds,
        claim.hold,
    )


def clear(store):
    """Remove all consumers."""
    with store.engine.begin() as connection:
        for table in (
            tables.allocations,
            tables.consumers,
            tables.holds,
            tables.hold_projects,
            tables.draws,
            tables.requests,
        ):
            connection.execute(sa.delete(table))


def picture(transaction):
    """All consumers, holds and draws that are stored."""
    consumer, allocation = tables.consumers.c, tables.allocations.c
    found = {}
    for row in transaction.rows(
        sa.select(
            consumer.uuid,
            consumer.generation,
            tables.projects.c.external_id,
            tables.consumer_types.c.name,
        )
        .join(tables.projects, tables.projects.c.id == consumer.project_id)
        .join(tables.consumer_types, tables.consumer_types.c.id == consumer.consumer_type_id)
    ):
        found[row[0]] = {"generation": row[1], "project": row[2], "type": row[3], "amounts": {}}
    for row in transaction.rows(
        sa.select(
            allocation.consumer_id,
            tables.resource_providers.c.uuid,
            tables.resource_classes.c.name,
            allocation.used,
        )
        .join(
            tables.resource_providers,
            tables.resource_providers.c.id == allocation.resource_provider_id,
        )
        .join(
            tables.resource_classes, tables.resource_classes.c.id == allocation.resource_class_id
        )
    ):
        found[row[0]]["amounts"][row[1], row[2]] = row[3]
    holds = {
        uuid: {
            "until": hold.terms.until,
            "returns": hold.terms.returns,
            "projects": list(hold.terms.projects),
        }
        for uuid, hold in holds_among(transaction, CONSUMERS).items()
    }
    drawn = {
        (consumer_uuid, (provider, name), hold, amount)
        for consumer_uuid, by_hold in drawn_by(transaction, CONSUMERS).items()
        for hold, by_provider in by_hold.items()
        for provider, amounts in by_provider.items()
        for name, amount in amounts.items()
    }
    rows = transaction.scalar(sa.select(sa.func.count()).select_from(tables.draws))
    return found, holds, drawn, rows


def picture_of(model):
    """The same of the definition."""
    drawn = {tuple(draw) for draw in model.draws}
    return model.consumers, model.holds, drawn, len(drawn)


@pytest.mark.slow
def test_random_writes_leave_what_the_definition_says(store, monkeypatch):
    live_through(store, monkeypatch, examples=10)


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_many_more_random_writes_do(store, monkeypatch, part):
    live_through(store, monkeypatch, examples=50)


def live_through(store, monkeypatch, examples):
    """Try random histories of writes."""
    for provider in PROVIDERS:
        store.write(providers.create, uuid=provider, name=provider, parent_uuid=None)
        store.write(inventories.replace_all, provider, 0, STOCKS, zero_capacity_allowed=True)
    Clock.time = START
    monkeypatch.setattr(transactions, "now_of", Clock.now)
    monkeypatch.setattr(hold_writes, "now_of", Clock.now)
    writes = type("WritesHere", (Writes,), {"store": store})
    run_state_machine_as_test(
        writes,
        # Shrinking would take minutes, and histories of fifty steps are short enough to read.
        settings=settings(
            max_examples=examples,
            stateful_step_count=50,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],
            report_multiple_bugs=False,
        ),
    )
