# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/flavors for servers (contract page 97, section 4.1)."""

import json
from urllib.parse import parse_qsl

from tests.paths import ROOT

CASES = json.loads((ROOT / "tests" / "client" / "flavors.json").read_text())


def test_flavors_of_servers_are_read_as_nova_reads_them_or_refused(fresh_service):
    flavors = [{"name": "m1", **case["flavor"]} for case in CASES]
    headers = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
    body = {"flavors": flavors, "for_servers": True}
    response = fresh_service().post("/treeclaim/flavors", json=body, headers=headers)
    assert response.status_code == 200, response.text
    for case, answer in zip(CASES, response.json()["flavors"], strict=True):
        if "query" in case:
            assert parse_qsl(answer.get("query")) == parse_qsl(case["query"]), (case, answer)
        else:
            message = answer.get("error", "nothing")
            assert [word for word in case["refused"] if word not in message] == [], (case, answer)
