# SPDX-License-Identifier: Apache-2.0
"""Plans of moves, over HTTP, and carried out (contract page 101, section 5)."""

import pytest

from tests.api.resources.planning.clouds import (
    HEADERS,
    applied,
    claimed,
    host,
    uuid_of,
)
from tests.bodies import claim_of
from tests.service import client_of, services_on, start_on

SHARING = "MISC_SHARES_VIA_AGGREGATE"


def asked(client, goal, status=200, **more):
    answer = client.post("/treeclaim/moves", json={"goal": goal} | more)
    assert answer.status_code == status, answer.text
    return answer.json()


def carried_out(client, plan):
    """Make the moves, one after the other; each must be accepted."""
    for move in plan["moves"]:
        path = f"/allocations/{move['consumer']}"
        now = client.get(path).json()
        assert {uuid: one["resources"] for uuid, one in now["allocations"].items()} == {
            uuid: one["resources"] for uuid, one in move["from"].items()
        }
        body = {
            move["consumer"]: claim_of(
                move["to"],
                project_id=now["project_id"],
                user_id=now["user_id"],
                consumer_type=now["consumer_type"],
                consumer_generation=move["consumer_generation"],
            )
        }
        answer = client.post("/allocations", json=body)
        assert answer.status_code == 204, answer.text


def test_moves_need_both_places_at_once_by_default(tmp_path):
    with services_on(tmp_path) as (_, application), client_of(application, **HEADERS) as client:
        applied(
            client,
            host("a", MEMORY_MB=8),
            host("n0", parent="a", VCPU=4),
            host("n1", parent="a", VCPU=4),
        )
        for name, node, units in (("i1", "n0", 2), ("i2", "n1", 2)):
            claimed(
                client,
                name,
                {node: {"VCPU": units}, "a": {"MEMORY_MB": 4}},
                request=[f"resources_C=VCPU:{units}&resources=MEMORY_MB:4"],
            )
        # Only within the tree is there a place, and its memory is all held.
        goal = {"fit": {"query": "resources_C=VCPU:4", "amount": 1}}
        assert asked(client, goal)["reached"] is False
        plan = asked(client, goal, both_at_once=False)
        assert (plan["reached"], len(plan["moves"])) == (True, 1)
        carried_out(client, plan)


def pools(client):
    """Two hosts that share two pools; i1 is on a with disk of the first."""
    disk = {"DISK_GB": 10}
    applied(
        client,
        host("a", "r1", VCPU=8),
        host("b", "r1", VCPU=8),
        host("p1", "r1", traits=[SHARING], **disk),
        host("p2", "r1", traits=[SHARING], **disk),
    )
    held = {"a": {"VCPU": 2}, "p1": {"DISK_GB": 3}}
    claimed(client, "i1", held, request=["resources=VCPU:2,DISK_GB:3"])


def test_pool_allocations_move_only_when_the_pool_is_emptied(tmp_path):
    with services_on(tmp_path) as (_, application), client_of(application, **HEADERS) as client:
        pools(client)
        plan = asked(client, {"empty": [uuid_of("a")]}, both_at_once=False)
        (move,) = plan["moves"]
        assert set(move["to"]) == {uuid_of("b"), uuid_of("p1")}
        carried_out(client, plan)
        plan = asked(client, {"empty": [uuid_of("p1")]})
        (move,) = plan["moves"]
        assert uuid_of("p2") in move["to"]
        carried_out(client, plan)


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
            # What is given is worked out first, whatever time that takes; then there is none left.
            plan = asked(client, goal, given=given, explain=True)
            assert (plan["complete"], plan["optimal"], plan["moves"]) == (False, False, [])
            assert plan["given"] == {"placed": [100]}
