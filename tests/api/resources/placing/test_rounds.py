# SPDX-License-Identifier: Apache-2.0
"""Placing where another writer is there first, or time runs out (contract page 98, section 4)."""

import uuid
from contextlib import contextmanager

import pytest

from tests.bodies import add_hosts, claim_of, wanted_by
from tests.service import client_of, make_application
from treeclaim.store import Store

HOSTS = [str(uuid.UUID(int=number)) for number in (1, 2, 3)]
VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


@contextmanager
def service(folder, **options):
    """A client of a service with three hosts of four VCPU each."""
    with client_of(make_application(folder, **options), **VERSION) as client:
        add_hosts(client, *HOSTS, VCPU=4)
        yield client


@pytest.fixture
def client(tmp_path):
    with service(tmp_path) as client:
        yield client


def place(client, consumers, rules=()):
    requests = [wanted_by(consumers, "resources=VCPU:3")]
    body = {"requests": requests, "rules": list(rules)}
    return client.post("/treeclaim/placements", json=body)


def roots(answer):
    assert answer.status_code == 201, answer.text
    return [
        HOSTS.index(placement["root_providers"][0]["uuid"])
        for placement in answer.json()["placements"]
    ]


def claim(client, host, amount=2, consumer=None):
    body = claim_of({HOSTS[host]: {"resources": {"VCPU": amount}}})
    path = f"/allocations/{consumer or uuid.uuid4()}"
    assert client.put(path, json=body).is_success


def new(count):
    return [str(uuid.uuid4()) for _ in range(count)]


@pytest.fixture
def meanwhile(monkeypatch):
    """Runs a function between a search and the transaction that writes its result."""
    waiting, tries = [], []
    place_found = Store.place

    def interrupted(store, claims):
        tries.append(len(claims))
        if waiting:
            waiting.pop(0)()
        place_found(store, claims)

    monkeypatch.setattr(Store, "place", interrupted)
    return waiting, tries


def test_all_new_consumers_are_placed_again_after_a_refusal(client, meanwhile):
    waiting, tries = meanwhile
    waiting.append(lambda: claim(client, 1))
    consumers = new(2)
    assert roots(place(client, consumers)) == [0, 2]
    assert tries == [2, 2]
    for consumer, host in zip(consumers, (0, 2), strict=True):
        held = client.get(f"/allocations/{consumer}").json()["allocations"]
        assert list(held) == [HOSTS[host]]


def test_same_domain_consumers_are_all_placed_again(client, meanwhile):
    waiting, _ = meanwhile
    rack = [str(uuid.UUID(int=9)), str(uuid.UUID(int=8))]
    for host, racks in ((0, rack[:1]), (1, rack[:1]), (2, rack[1:])):
        path = f"/resource_providers/{HOSTS[host]}/aggregates"
        body = {"aggregates": racks, "resource_provider_generation": 1}
        assert client.put(path, json=body).is_success
    waiting.append(lambda: claim(client, 0, 4))
    rules = [{"domains": rack, "same_domain": True}]
    assert roots(place(client, new(1), rules)) == [1]


def test_nothing_is_written_without_capacity_for_all(client, meanwhile):
    waiting, _ = meanwhile
    waiting.append(lambda: claim(client, 2))
    consumers = new(3)
    answer = place(client, consumers)
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["unplaced"] == consumers[2:]
    for consumer in consumers:
        assert client.get(f"/allocations/{consumer}").json()["allocations"] == {}


def test_one_of_two_equal_concurrent_calls_places(client, meanwhile):
    waiting, tries = meanwhile
    consumers = new(2)
    waiting.append(lambda: roots(place(client, consumers)))
    answer = place(client, consumers)
    assert answer.status_code == 200, answer.text
    assert all(placement["mappings"] is None for placement in answer.json()["placements"])
    assert tries == [2, 2]


def test_placement_gives_up_after_the_retry_limit(tmp_path, meanwhile):
    waiting, tries = meanwhile
    with service(tmp_path, **{"placement.allocation_conflict_retry_count": "2"}) as client:
        waiting += [lambda: claim(client, 0), lambda: claim(client, 1)]
        (consumer,) = new(1)
        answer = place(client, [consumer], [{"domains": "tree", "max_per_domain": 1}])
        assert answer.status_code == 409, answer.text
        error = answer.json()["errors"][0]
        assert error["code"] == "placement.concurrent_update"
        assert error["conflict"] == {"kind": "retries_exhausted"}
        assert tries == [1, 1]
        assert client.get(f"/allocations/{consumer}").json()["allocations"] == {}


def test_consumer_record_without_allocations_does_not_count(client):
    (consumer,) = new(1)
    claim(client, 0, 4, consumer)
    assert client.delete(f"/allocations/{consumer}").is_success
    assert roots(place(client, [consumer])) == [0]


def test_timed_out_call_writes_nothing(tmp_path):
    with service(tmp_path, **{"treeclaim.search_seconds": "0.000001"}) as client:
        consumers = new(1)
        for path, body in (
            ("placements", {"requests": [wanted_by(consumers, "resources=VCPU:1")]}),
            ("candidates", {"alternatives": ["resources=VCPU:1"]}),
        ):
            answer = client.post(f"/treeclaim/{path}", json=body)
            assert answer.status_code in (400, 503), answer.text
            if answer.status_code == 400:
                assert answer.json()["errors"][0]["code"] == "treeclaim.deadline"
        assert client.get(f"/allocations/{consumers[0]}").json()["allocations"] == {}
