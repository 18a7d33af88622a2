# SPDX-License-Identifier: Apache-2.0
"""Orders that keep room for a mix, over HTTP: each question has the mix as it is (page 101, section 3)."""

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.bodies import wanted_by
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
        for name, device in (("first", "VGPU"), ("second", "PGPU")):
            uuid = uuid_of(name)
            client.post("/resource_providers", json={"name": name, "uuid": uuid})
            body = {
                "inventories": {"VCPU": {"total": 8}, device: {"total": 1}},
                "resource_provider_generation": 0,
            }
            answer = client.put(f"/resource_providers/{uuid}/inventories", json=body)
            assert answer.status_code == 200, answer.text
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


@pytest.mark.parametrize("order", ["keep:none:VCPU", "keep:day:DISK_GB", "keep:%00:VCPU"])
def test_unknown_mix_or_unused_class_is_refused_by_every_operation(clients, order):
    client = clients[0]
    put(client, OF_FIRST)
    query = f"resources=VCPU:1&order_by={order}"
    request = wanted_by([uuid_of("nobody")], query)
    bodies = {
        "candidates": ("alternatives[0]: ", {"alternatives": [query]}),
        "capacity": ("requests.a: ", {"requests": {"a": query}}),
        "placements": ("requests[0].alternatives[0]: ", {"requests": [request]}),
    }
    answers = [
        ("", client.get(f"/allocation_candidates?{query}")),
        ("", client.get(f"/allocation_candidates/explain?{query}")),
        *(
            (where, client.post(f"/treeclaim/{path}", json=body))
            for path, (where, body) in bodies.items()
        ),
    ]
    for where, answer in answers:
        assert answer.status_code == 400, answer.text
        (error,) = answer.json()["errors"]
        assert error["code"] == "placement.query.bad_value"
        assert f"{where}Invalid query string parameters: 'order_by'" in error["detail"]


def test_mix_request_with_deleted_names_fits_nowhere(clients):
    client = clients[0]
    client.put("/resource_classes/CUSTOM_GOES")
    large = OF_FIRST["requests"]["large"]
    gone = {"query": "resources=VCPU:8,CUSTOM_GOES:1", "weight": 1000}
    put(client, {"requests": {"large": large, "gone": gone}})
    assert client.delete("/resource_classes/CUSTOM_GOES").status_code == 204
    assert asked(client) == SECOND
    assert client.get("/treeclaim/mixes/day").json()["requests"]["gone"] == gone
