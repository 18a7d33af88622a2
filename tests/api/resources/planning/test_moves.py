# SPDX-License-Identifier: Apache-2.0
"""Plans of moves without time, over HTTP (contract page 101, section 5)."""

import pytest

from tests.api.resources.planning.clouds import HEADERS, host, uuid_of
from tests.service import client_of, start_on


@pytest.mark.slow
def test_plan_past_its_deadline_still_returns_a_result(tmp_path, database):
    slow = "resources=VCPU:1" + "".join(f"&resources_{n}=VCPU:1" for n in range(400))
    mix = {"requests": {"usual": {"query": "resources=VCPU:2", "weight": 1}}}
    place = {"requests": [{"query": slow, "amount": 100}]}
    given = {"place": place, "providers": [host("big", VCPU=40_100)]}
    with (
        start_on(database, tmp_path, **{"treeclaim.plan_seconds": "0.1"}) as application,
        client_of(application, **HEADERS) as client,
    ):
        assert client.put("/treeclaim/mixes/usual", json=mix).status_code == 204
        for goal in (
            {"empty": [uuid_of("a")]},
            {"fit": {"query": "resources=VCPU:8", "amount": 2}},
            {"keep": {"mix": "usual", "empty_trees": True}},
        ):
            # The assumptions are applied first, without a limit; then no time is left.
            body = {"goal": goal, "given": given, "explain": True}
            plan = client.post("/treeclaim/moves", json=body).json()
            assert (plan["complete"], plan["optimal"], plan["moves"]) == (False, False, [])
            assert plan["given"] == {"placed": [100]}
