# SPDX-License-Identifier: Apache-2.0
"""The sums of alternatives are computed once for all consumers that hold something already."""

import uuid
from collections import Counter

import pytest

from tests.service import client_of, make_application
from treeclaim.api.resources.placing import placements
from treeclaim.replica import Arrival

VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
HOST = str(uuid.UUID(int=1))
CONSUMERS = [str(uuid.UUID(int=100 + number)) for number in range(60)]


@pytest.fixture
def client(tmp_path):
    """A service with a host on which all consumers hold something."""
    with client_of(make_application(tmp_path), **VERSION) as client:
        body = {"name": "host", "uuid": HOST}
        assert client.post("/resource_providers", json=body).is_success
        stock = {"VCPU": {"total": 1000}, "MEMORY_MB": {"total": 1000}}
        inventories = {"inventories": stock, "resource_provider_generation": 0}
        assert client.put(f"/resource_providers/{HOST}/inventories", json=inventories).is_success
        assert place(client, ["resources=VCPU:2,MEMORY_MB:1"], CONSUMERS).status_code == 201
        yield client


def place(client, alternatives, consumers):
    request = {"alternatives": alternatives, "consumers": consumers, **OWNER}
    return client.post("/treeclaim/placements", json={"requests": [request]})


def test_sums_are_computed_once_per_consumer_and_alternative(client, monkeypatch):
    added = Counter()
    real = placements._sum_of

    def counted(parts):
        added["sums"] += 1
        return real(parts)

    monkeypatch.setattr(placements, "_sum_of", counted)
    # The last alternative is what they hold, in other groups.
    alternatives = [f"resources=VCPU:{10 + number}" for number in range(14)]
    alternatives += [
        "resources1=MEMORY_MB:1&resources2=VCPU:1&resources3=VCPU:1&group_policy=none"
    ]
    alternatives += ["resources=VCPU:2,MEMORY_MB:1"]
    answer = place(client, alternatives, CONSUMERS)
    assert answer.status_code == 200, answer.text
    assert {placement["alternative"] for placement in answer.json()["placements"]} == {14}
    assert added["sums"] == len(alternatives) + len(CONSUMERS)


def test_comparison_checks_the_deadline_for_each_consumer(client, monkeypatch):
    looks = []
    monkeypatch.setattr(Arrival, "check", lambda _: looks.append(1))
    assert place(client, ["resources=VCPU:2,MEMORY_MB:1"], CONSUMERS).status_code == 200
    assert len(looks) >= len(CONSUMERS)
