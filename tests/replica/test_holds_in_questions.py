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
class Interrupted(HoldsQuery):
    """Something happens after the Forest was brought to the snapshot, before holds are read in it."""

    happens: list = field(default_factory=list)

    def read(self, transaction):
        while self.happens:
            self.happens.pop()()
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


def fits(services, amount, happens=()):
    request = CandidateRequest((RequestGroup("", {"VCPU": amount}),), from_holds=(HOLD,))
    interrupted = Interrupted(frozenset({HOLD}), happens=list(happens))
    question = candidate_question(request, SearchOptions(), BodyForm())
    return b"VCPU" in b"".join(services.replica.answer(replace(question, holds=interrupted)))


def test_concurrent_write_is_seen_in_both_reads_or_neither(service):
    services, client = service

    def others_take_what_the_hold_had():
        assert client.delete(f"/allocations/{HOLD}").status_code == 204
        claim(client, TAKER, 6, "INSTANCE")

    # With the former hold and the later usage, 10 would be free.
    assert not fits(services, 11, [others_take_what_the_hold_had])
    assert fits(services, 4)
    assert not fits(services, 5)


def test_hold_released_during_the_read_is_not_counted_twice(service):
    services, client = service
    assert fits(services, 10, [lambda: client.delete(f"/allocations/{HOLD}")])
    assert fits(services, 10)
    assert not fits(services, 11)


def told(services, *happens):
    """The free and the held amounts of the only host in an explanation."""
    request = CandidateRequest((RequestGroup("", {"VCPU": 9}),))
    interrupted = Interrupted(everywhere=True, happens=list(happens))
    question = replace(explain_question(request, Focus()), holds=interrupted)
    (tree,) = json.loads(b"".join(services.replica.answer(question)))["nearest"]
    (shown,) = tree["blocked_by"][0]["providers"]
    return shown["free"], shown["held"]


def test_explanation_and_held_amounts_come_from_one_snapshot(service):
    services, client = service

    def others_take_half_of_it():
        claim(client, TAKER, 2, "INSTANCE")

    assert told(services, others_take_half_of_it) == (4, 6)
    assert told(services) == (2, 6)
    assert told(services, lambda: client.delete(f"/allocations/{HOLD}")) == (2, 6)
    assert told(services) == (8, 0)


def test_reading_all_holds_does_not_block_the_forest(service):
    services, _ = service
    results = []

    def somebody_comes():
        turn = services.replica.turn
        # The upkeep of the Forest may have the turn for a moment; the reader would keep it.
        results.append(turn.acquire(_TURN_SECONDS))
        if results[-1]:
            turn.release()

    told(services, somebody_comes)
    assert results == [True]


def test_child_is_ended_when_holds_cannot_be_read(service, monkeypatch):
    services, _ = service
    made = []
    fork = os.fork

    def forked():
        made.append(fork())
        return made[-1]

    monkeypatch.setattr(os, "fork", forked)

    def fails():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        told(services, fails)
    with pytest.raises(ChildProcessError):
        os.waitpid(made[-1], os.WNOHANG)
