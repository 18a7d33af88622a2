# SPDX-License-Identifier: Apache-2.0
"""`stranded` of totals over HTTP: what is free and of no use to a mix (page 101, section 3)."""

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.service import client_of, make_application

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
HOSTS = {"one": 10, "two": 7, "three": 3}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Three hosts with 10, 7 and 3 VCPU, of which two are in a rack."""
    found = client_of(make_application(tmp_path_factory.mktemp("service")), **EXTENDED)
    for name, total in HOSTS.items():
        uuid = uuid_of(name)
        found.post("/resource_providers", json={"name": name, "uuid": uuid})
        body = {
            "inventories": {"VCPU": {"total": total}, "DISK_GB": {"total": 1}},
            "resource_provider_generation": 0,
        }
        assert found.put(f"/resource_providers/{uuid}/inventories", json=body).is_success
    for name in ("one", "two"):
        body = {"aggregates": [uuid_of("rack")], "resource_provider_generation": 1}
        path = f"/resource_providers/{uuid_of(name)}/aggregates"
        assert found.put(path, json=body).is_success
    mix = {"requests": {"a": {"query": "resources=VCPU:4", "weight": 1}}}
    assert found.put("/treeclaim/mixes/day", json=mix).status_code == 204
    return found


def totals(client, query="", given=None):
    path = f"/treeclaim/totals?{query}"
    answer = client.get(path) if given is None else client.post(path, json={"given": given})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_is_left_of_hosts_after_whole_requests_is_stranded(client):
    # 10 - 8, 7 - 4, and 3.
    found = totals(client, "mix=day")
    assert found["totals"]["VCPU"]["stranded"] == 2 + 3 + 3
    assert "stranded" not in found["totals"]["DISK_GB"]
    plain = totals(client)
    del found["totals"]["VCPU"]["stranded"]
    assert found == plain | {"cursor": found["cursor"]}


def test_filters_and_parts_are_as_ever(client):
    query = f"mix=day&member_of={uuid_of('rack')}"
    assert totals(client, query)["totals"]["VCPU"]["stranded"] == 2 + 3
    found = totals(client, f"{query}&by=tree&limit=1&resource_class=VCPU")
    assert list(found["totals"]) == ["VCPU"]
    assert found["totals"]["VCPU"]["stranded"] == 2 + 3
    assert len(found["parts"]) == 1
    assert "mix=day" in found["links"][0]["href"]


def test_it_is_told_of_things_as_they_would_be_too(client):
    found = totals(client, "mix=day", given={"without": [uuid_of("one")]})
    assert found["totals"]["VCPU"]["stranded"] == 3 + 3
    placed = {"requests": [{"query": "resources=VCPU:4", "amount": 2}]}
    found = totals(client, "mix=day", given={"place": placed})
    assert found["given"] == {"placed": [2]}
    assert found["totals"]["VCPU"]["stranded"] == 2 + 3 + 3


def test_an_unknown_mix_is_refused(client):
    for name in ("night", "%00", "Day"):
        answer = client.get(f"/treeclaim/totals?mix={name}")
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["code"] == "placement.query.bad_value"
