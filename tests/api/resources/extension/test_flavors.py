# SPDX-License-Identifier: Apache-2.0
"""Flavors as Nova (contract page 97, section 4.1); `gabbits/flavors.yaml` has those of the extension."""

import json
from urllib.parse import parse_qsl

from tests.paths import ROOT
from tests.service import application_on, client_of

CASES = json.loads((ROOT / "tests" / "client" / "flavors.json").read_text())
VERSIONS = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


def test_flavors_as_nova_become_the_queries_of_nova(tmp_path):
    body = {"flavors": [{"name": "m1"} | case["flavor"] for case in CASES], "as_nova": True}
    with application_on("sqlite", tmp_path) as application, client_of(application) as client:
        rows = client.post("/treeclaim/flavors", json=body, headers=VERSIONS).json()["flavors"]
    for case, row in zip(CASES, rows, strict=True):
        if "query" in case:
            assert parse_qsl(row["query"]) == parse_qsl(case["query"]), case["name"]
        else:
            assert [word for word in case["refused"] if word not in row["error"]] == []
