# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/flavors (contract page 97, section 4.1)."""

import json
from urllib.parse import parse_qsl

import pytest

from tests.paths import ROOT
from tests.service import application_on, client_of

CASES = json.loads((ROOT / "tests" / "client" / "flavors.json").read_text())
VERSIONS = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


@pytest.fixture(scope="module")
def translate(tmp_path_factory):
    """A function that translates flavors with some options."""
    folder = tmp_path_factory.mktemp("flavors")
    with application_on("sqlite", folder) as application, client_of(application) as client:

        def send(*flavors, **options):
            body = {"flavors": [{"name": "m1"} | flavor for flavor in flavors], **options}
            answer = client.post("/treeclaim/flavors", json=body, headers=VERSIONS)
            assert answer.status_code == 200, answer.text
            return answer.json()["flavors"]

        yield send


def test_flavor_becomes_its_query(translate):
    specs = {"resources_GPU:VGPU": "1", "resources:DISK_GB": "0", "hw:cpu_policy": "dedicated"}
    [row] = translate({"vcpus": 4, "ram": 8192, "disk": 20, "odd": 1, "extra_specs": specs})
    assert row == {
        "name": "m1",
        "query": "resources=VCPU:4,MEMORY_MB:8192&resources_GPU=VGPU:1",
    }


def test_wrong_key_is_an_error_of_its_flavor_alone(translate):
    wrong, right = translate({"extra_specs": {"resources:VCPU": "x"}}, {"vcpus": 1})
    assert "resources:VCPU" in wrong["error"]
    assert right["query"] == "resources=VCPU:1"


def test_flavors_as_nova_become_the_queries_of_nova(translate):
    rows = translate(*(case["flavor"] for case in CASES), as_nova=True)
    for case, row in zip(CASES, rows, strict=True):
        if "query" in case:
            assert parse_qsl(row["query"]) == parse_qsl(case["query"]), case["name"]
        else:
            assert [word for word in case["refused"] if word not in row["error"]] == []
