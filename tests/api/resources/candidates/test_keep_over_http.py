# SPDX-License-Identifier: Apache-2.0
"""Orders that keep room for a mix, over HTTP: each question has the mix as it is (page 101, section 3)."""

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.bodies import add_hosts, wanted_by
from tests.service import client_of, fresh_database, start_on

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
FIRST, SECOND = uuid_of("first"), uuid_of("second")
ORDER = "order_by=keep:day:VCPU"
QUERY = f"resources=VCPU:1&{ORDER}"
OF_FIRST, OF_SECOND = (
    {"requests": {"large": {"query": f"resources=VCPU:8,{name}:1", "weight": 1}}}
    for name in ("VGPU", "PGPU")
)
"""What only one of the hosts can take."""


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """Two services on one database with two hosts, each of which has a device of its own kind."""
    url = fresh_database(tmp_path_factory.mktemp("database"))
    with (
        start_on(url, tmp_path_factory.mktemp("one")) as one,
        start_on(url, tmp_path_factory.mktemp("other")) as other,
    ):
        client = client_of(one, **EXTENDED)
        add_hosts(client, FIRST, VCPU=8, VGPU=1)
        add_hosts(client, SECOND, VCPU=8, PGPU=1)
        yield client, client_of(other, **EXTENDED)


def put(client, mix):
    assert client.put("/treeclaim/mixes/day", json=mix).status_code == 204


def first_of(document):
    (host,) = document["allocation_requests"][0]["allocations"]
    return host


def asked(client, query=QUERY):
    """The host of the first candidate, asked for in both ways, and what no kept answer told."""
    plain = client.get(f"/allocation_candidates?{query}").json()
    several = client.post("/treeclaim/candidates", json={"alternatives": [query]}).json()
    del several["alternative"]
    assert several["scores"] == plain["scores"]
    assert first_of(several) == first_of(plain)
    return first_of(plain)


def test_current_mix_applies_on_every_worker(clients):
    for mix, expected in 2 * ((OF_FIRST, SECOND), (OF_SECOND, FIRST)):
        for writer in clients:
            put(writer, mix)
            for reader in clients:
                # The second time the answer is there already.
                assert [asked(reader), asked(reader)] == [expected, expected]


@pytest.mark.parametrize("consumers", [1, 2])
def test_placements_minimize_the_loss_of_the_current_mix(clients, consumers):
    for mix, expected in 2 * ((OF_FIRST, SECOND), (OF_SECOND, FIRST)):
        put(clients[1], mix)
        names = [uuid_of(f"consumer {number}") for number in range(consumers)]
        request = wanted_by(names, QUERY)
        answer = clients[0].post("/treeclaim/placements", json={"requests": [request]})
        assert answer.status_code == 201, answer.text
        placed = answer.json()["placements"]
        assert [host for one in placed for host in one["allocations"]] == [expected] * consumers
        for name in names:
            assert clients[0].delete(f"/allocations/{name}").status_code == 204
