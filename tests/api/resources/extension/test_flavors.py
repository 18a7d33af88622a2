# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/flavors (contract page 97, section 4.1)."""

import json
from urllib.parse import parse_qsl

import pytest

from tests.paths import ROOT

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
PATH = "/treeclaim/flavors"


CASES = json.loads((ROOT / "tests" / "client" / "flavors.json").read_text())


def translated(client, *flavors, **members):
    """The response for some flavors."""
    response = client.post(PATH, json={"flavors": flavors, **members}, headers=EXTENDED)
    assert response.status_code == 200, response.text
    return response.json()["flavors"]


def test_flavors_become_queries_in_order(fresh_service):
    gpu = {
        "name": "gpu",
        "vcpus": 4,
        "ram": 8192,
        "disk": 0,
        "extra_specs": {"resources_GPU:VGPU": "1"},
    }
    row = {
        "ID": "1",
        "Name": "m1.tiny",
        "RAM": 512,
        "Disk": 1,
        "Ephemeral": 0,
        "VCPUs": 1,
        "Is Public": True,
        "Swap": 0,
        "RXTX Factor": 1.0,
        "Properties": {"trait:HW_CPU_X86_AVX": "required", "hw:cpu_policy": "shared"},
    }
    wrong = {"name": "odd", "extra_specs": {"resources:VCPU": "x"}}
    answers = translated(fresh_service(), gpu, row, wrong, {"name": "none", "extra": [1]})
    assert answers[0] == {
        "name": "gpu",
        "query": "resources=VCPU:4,MEMORY_MB:8192&resources_GPU=VGPU:1",
    }
    assert answers[1] == {
        "name": "m1.tiny",
        "query": "resources=VCPU:1,MEMORY_MB:512,DISK_GB:1&required=HW_CPU_X86_AVX",
    }
    assert answers[2].keys() == {"name", "error"}
    assert "resources:VCPU" in answers[2]["error"]
    assert answers[3] == {"name": "none", "query": ""}


def test_flavors_of_servers_are_read_as_nova_reads_them_or_refused(fresh_service):
    flavors = [{"name": "m1", **case["flavor"]} for case in CASES]
    answers = translated(fresh_service(), *flavors, for_servers=True)
    for case, answer in zip(CASES, answers, strict=True):
        if "query" in case:
            assert parse_qsl(answer.get("query")) == parse_qsl(case["query"]), (case, answer)
        else:
            message = answer.get("error", "nothing")
            assert [word for word in case["refused"] if word not in message] == [], (case, answer)


def test_queries_can_be_searched_with(fresh_service):
    client = fresh_service()
    provider = client.post("/resource_providers", json={"name": "host"}).json()
    body = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
    client.put(f"/resource_providers/{provider['uuid']}/inventories", json=body)
    specs = {"where:1": "exists mem_gib", "order_by": "pack", "hw:x": "&limit=0"}
    [plain, special] = translated(
        client,
        {"name": "small", "vcpus": 2},
        {"name": "special", "vcpus": 2, "extra_specs": specs},
    )
    for flavor, count in ((plain, 1), (special, 0)):
        path = f"/allocation_candidates?{flavor['query']}"
        found = client.get(path, headers=EXTENDED)
        assert found.status_code == 200, found.text
        assert len(found.json()["allocation_requests"]) == count


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"flavors": []},
        {"flavors": [{"vcpus": 1}]},
        {"flavors": [{"name": 5}]},
        {"flavors": ["small"]},
        {"flavors": 1_001 * [{"name": "small"}]},
        {"flavors": [{"name": "small"}], "more": 1},
    ],
)
def test_malformed_bodies_are_refused(fresh_service, body):
    assert fresh_service().post(PATH, json=body, headers=EXTENDED).status_code == 400


def test_operation_needs_the_extension_and_the_rule_of_the_search(fresh_service):
    client = fresh_service()
    body = {"flavors": [{"name": "small"}]}
    refused = client.post(PATH, json=body)
    assert refused.status_code == 404
    assert "treeclaim 1.0" in refused.json()["errors"][0]["detail"]
    headers = EXTENDED | {"x-auth-token": "nobody"}
    assert client.post(PATH, json=body, headers=headers).status_code == 403
