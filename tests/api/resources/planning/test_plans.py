# SPDX-License-Identifier: Apache-2.0
"""Plans whose time is over, and plans at the same time (contract page 101, sections 4 and 5)."""

import os
import threading

import pytest

from tests.api.resources.planning.clouds import HEADERS, host, uuid_of
from tests.service import client_of, start_on


def asked(client, domains="tree", status=200, **more):
    answer = client.post("/treeclaim/survival", json={"domains": domains} | more)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_survival_past_its_deadline_returns_partial_results(tmp_path, database):
    slow = "resources=VCPU:1" + "".join(f"&resources_{n}=VCPU:1" for n in range(40))
    with (
        start_on(database, tmp_path, **{"treeclaim.plan_seconds": "0.1"}) as application,
        client_of(application, **HEADERS) as client,
    ):
        # The assumptions are applied first, without a limit; then no time is left.
        place = {"requests": [{"query": slow, "amount": 4_000}]}
        answer = asked(client, given={"place": place, "providers": [host("big", VCPU=164_000)]})
        assert answer["complete"] is False
        assert answer["of"] == 5
        assert answer["unknown"] == 5 - answer["survive"] - answer["fail"] > 0
        assert answer["given"] == {"placed": [4_000]}


def test_plans_run_one_at_a_time(tmp_path, database, monkeypatch):
    with start_on(database, tmp_path) as application, client_of(application, **HEADERS) as client:
        inside, go_on = threading.Event(), threading.Event()

        fork = os.fork

        def waiting():
            inside.set()
            assert go_on.wait(30)
            return fork()

        monkeypatch.setattr(os, "fork", waiting)
        answers = []
        first = threading.Thread(
            target=lambda: answers.append(
                client.post("/treeclaim/survival", json={"domains": "tree"})
            )
        )
        first.start()
        assert inside.wait(30)
        second = client.post("/treeclaim/survival", json={"domains": "tree"})
        assert second.status_code == 503
        assert int(second.headers["retry-after"]) > 0
        go_on.set()
        first.join()
        assert answers[0].status_code == 200
        assert asked(client)["of"] == 4


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
