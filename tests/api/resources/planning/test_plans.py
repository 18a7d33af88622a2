# SPDX-License-Identifier: Apache-2.0
"""Plans at their deadline, and concurrent plans (contract page 101, sections 4 and 5)."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.resources.planning.clouds import HEADERS, host, uuid_of
from tests.service import client_of, start_on


def test_plans_run_one_at_a_time(tmp_path, database, monkeypatch):
    with start_on(database, tmp_path) as application, client_of(application, **HEADERS) as client:
        inside, go_on = threading.Event(), threading.Event()

        fork = os.fork

        def waiting():
            inside.set()
            assert go_on.wait(30)
            return fork()

        monkeypatch.setattr(os, "fork", waiting)

        def survive():
            return client.post("/treeclaim/survival", json={"domains": "tree"})

        with ThreadPoolExecutor(1) as other:
            first = other.submit(survive)
            assert inside.wait(30)
            second = survive()
            assert second.status_code == 503
            assert int(second.headers["retry-after"]) > 0
            go_on.set()
            assert first.result().status_code == 200
        assert survive().json()["of"] == 4


@pytest.mark.slow
def test_plan_past_its_deadline_returns_partial_results(tmp_path, database):
    slow = "resources=VCPU:1" + "".join(f"&resources_{n}=VCPU:1" for n in range(400))
    mix = {"requests": {"usual": {"query": "resources=VCPU:2", "weight": 1}}}
    place = {"requests": [{"query": slow, "amount": 100}]}
    assumptions = {"place": place, "providers": [host("big", VCPU=40_100)]}

    def plan(operation, **body):
        # The assumptions are applied first, without a limit; then no time is left.
        answer = client.post(f"/treeclaim/{operation}", json=body | {"given": assumptions}).json()
        assert answer["complete"] is False
        assert answer["given"] == {"placed": [100]}
        return answer

    with (
        start_on(database, tmp_path, **{"treeclaim.plan_seconds": "0.1"}) as application,
        client_of(application, **HEADERS) as client,
    ):
        survival = plan("survival", domains="tree")
        assert survival["of"] == 5
        assert survival["unknown"] == 5 - survival["survive"] - survival["fail"] > 0
        assert client.put("/treeclaim/mixes/usual", json=mix).status_code == 204
        for goal in (
            {"empty": [uuid_of("a")]},
            {"fit": {"query": "resources=VCPU:8", "amount": 2}},
            {"keep": {"mix": "usual", "empty_trees": True}},
        ):
            moves = plan("moves", goal=goal, explain=True)
            assert (moves["optimal"], moves["moves"]) == (False, [])
