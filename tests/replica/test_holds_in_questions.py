# SPDX-License-Identifier: Apache-2.0
"""Held and used amounts are read at one moment (contract page 100, section 2)."""

import json
import os
import uuid
from dataclasses import dataclass, field, replace

import pytest

from tests.bodies import claim_of
from tests.service import client_of, services_on
from treeclaim.forest.explain.explain import Focus
from treeclaim.model.request import BodyForm, CandidateRequest, RequestGroup, SearchOptions
from treeclaim.replica.question import HoldsQuery
from treeclaim.replica.questions import candidate_question, explain_question
from treeclaim.store.database.compiled import compile_insert
from treeclaim.store.schema.tables import holds

_TURN_SECONDS = 10.0

HOST, HOLD, TAKER = (str(uuid.uuid5(uuid.UUID(int=3), name)) for name in "abc")


@dataclass(frozen=True)
class InterruptedQuery(HoldsQuery):
    """Runs events after the Forest has caught up with the snapshot, before holds are read in it."""

    events: list = field(default_factory=list)

    def read(self, transaction):
        while self.events:
            self.events.pop()()
        return super().read(transaction)


def claim(client, consumer, amount, consumer_type):
    body = claim_of({HOST: {"resources": {"VCPU": amount}}}, consumer_type=consumer_type)
    assert client.put(f"/allocations/{consumer}", json=body).status_code == 204


@pytest.fixture
def service(tmp_path):
    with services_on(tmp_path) as (services, application):
        client = client_of(application)
        assert client.post("/resource_providers", json={"name": "a", "uuid": HOST}).is_success
        body = {"inventories": {"VCPU": {"total": 10}}, "resource_provider_generation": 0}
        assert client.put(f"/resource_providers/{HOST}/inventories", json=body).is_success
        claim(client, HOLD, 6, "TREECLAIM_HOLD")
        terms = {"uuid": HOLD, "ends_at": None, "returns": False, "note": None}
        services.store.write(lambda writing: writing.execute(compile_insert(holds), **terms))
        yield services, client


def can_draw(services, amount, events=()):
    request = CandidateRequest((RequestGroup("", {"VCPU": amount}),), from_holds=(HOLD,))
    interrupted = InterruptedQuery(frozenset({HOLD}), events=list(events))
    question = candidate_question(request, SearchOptions(), BodyForm())
    return b"VCPU" in b"".join(services.replica.answer(replace(question, holds=interrupted)))


def test_concurrent_write_is_seen_in_both_reads_or_neither(service):
    services, client = service

    def move_hold_to_a_claim():
        assert client.delete(f"/allocations/{HOLD}").status_code == 204
        claim(client, TAKER, 6, "INSTANCE")

    # The former hold and the later usage together would leave 10 free.
    assert not can_draw(services, 11, [move_hold_to_a_claim])
    assert can_draw(services, 4)
    assert not can_draw(services, 5)


def test_hold_released_during_the_read_is_not_counted_twice(service):
    services, client = service
    assert can_draw(services, 10, [lambda: client.delete(f"/allocations/{HOLD}")])
    assert can_draw(services, 10)
    assert not can_draw(services, 11)


def explain_host(services, *events):
    """Explain a query; return the free and held amounts of the only host."""
    request = CandidateRequest((RequestGroup("", {"VCPU": 9}),))
    interrupted = InterruptedQuery(has_sums=True, events=list(events))
    question = replace(explain_question(request, Focus()), holds=interrupted)
    (tree,) = json.loads(b"".join(services.replica.answer(question)))["nearest"]
    (shown,) = tree["blocked_by"][0]["providers"]
    return shown["free"], shown["held"]


def test_explanation_and_held_amounts_come_from_one_snapshot(service):
    services, client = service

    def claim_two_units():
        claim(client, TAKER, 2, "INSTANCE")

    assert explain_host(services, claim_two_units) == (4, 6)
    assert explain_host(services) == (2, 6)
    assert explain_host(services, lambda: client.delete(f"/allocations/{HOLD}")) == (2, 6)
    assert explain_host(services) == (8, 0)


def test_reading_all_holds_does_not_block_the_forest(service):
    services, _ = service
    results = []

    def take_turn():
        turn = services.replica.turn
        # Upkeep may have the turn for a moment; a blocking reader would keep it.
        results.append(turn.acquire(_TURN_SECONDS))
        if results[-1]:
            turn.release()

    explain_host(services, take_turn)
    assert results == [True]


def test_child_is_ended_when_holds_cannot_be_read(service, monkeypatch):
    services, _ = service
    forked_pids = []
    fork = os.fork

    def forked():
        forked_pids.append(fork())
        return forked_pids[-1]

    monkeypatch.setattr(os, "fork", forked)

    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        explain_host(services, fail)
    with pytest.raises(ChildProcessError):
        os.waitpid(forked_pids[-1], os.WNOHANG)
