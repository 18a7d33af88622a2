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


def emptying(*names):
    return {"empty": [uuid_of(name) for name in names]}


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


def where(plan):
    """By name of the host: who goes where."""
    names = {uuid_of(name): name for name in ("i1", "i2", "i3", "i4", "i5", "big", "small")}
    return {
        names[move["consumer"]]: [to_root["name"] for to_root in move["to_roots"]]
        for move in plan["moves"]
    }


def left(plan):
    return plan["before"]["left"], plan["after"]["left"]


def used(client, name):
    body = client.get(f"/resource_providers/{uuid_of(name)}/usages").json()
    return body["usages"]["VCPU"]


def test_a_host_is_emptied(service):
    plan = asked(service, emptying("a"))
    assert {key: plan[key] for key in ("reached", "complete", "at_least", "optimal")} == {
        "reached": True,
        "complete": True,
        "at_least": 2,
        "optimal": True,
    }
    assert (plan["stuck"], plan["proven"]) == ([], False)
    assert plan["before"] == {"left": 2, "fits": None, "empty_trees": 1}
    assert plan["after"]["left"] == 0
    moves = {move["consumer"]: move for move in plan["moves"]}
    first = moves[uuid_of("i1")]
    assert first["from"] == {uuid_of("a"): {"resources": {"VCPU": 4}}}
    assert first["to"] == {uuid_of("d"): {"resources": {"VCPU": 4}}}
    assert first["mappings"] == {"": [uuid_of("d")]}
    assert first["from_roots"] == [{"uuid": uuid_of("a"), "name": "a"}]
    assert first["to_roots"] == [{"uuid": uuid_of("d"), "name": "d"}]
    assert (first["alternative"], first["consumer_generation"]) == (0, 1)
    carried_out(service, plan)
    assert used(service, "a") == 0


def test_aggregate_is_emptied_by_trees_of_its_roots(service):
    applied(service, host("e", VCPU=16))
    plan = asked(service, {"empty_aggregate": uuid_of("r1")})
    assert (plan["reached"], left(plan)) == (True, (3, 0))
    assert not {"a", "b"} & {name for hosts in where(plan).values() for name in hosts}
    carried_out(service, plan)
    assert (used(service, "a"), used(service, "b")) == (0, 0)


def test_other_consumers_move_to_make_room(service):
    # The 5 of c have room nowhere: i1 or both of a have to go, i3 finds no other place itself.
    plan = asked(service, emptying("c"))
    assert (plan["reached"], plan["at_least"], plan["optimal"]) == (True, 2, True)
    assert plan["moves"][-1]["consumer"] == uuid_of("i4")
    assert where(plan)["i4"] == ["a"]
    carried_out(service, plan)
    assert used(service, "c") == 0


def test_room_is_made_for_a_query(service):
    query = "resources=VCPU:8"
    plan = asked(service, {"fit": {"query": query, "amount": 1}})
    assert (plan["reached"], plan["at_least"]) == (True, 2)
    assert (plan["before"]["fits"], plan["after"]["fits"]) == (0, 1)
    assert plan["before"]["left"] is None
    carried_out(service, plan)
    counted = service.post("/treeclaim/capacity", json={"requests": {"x": query}}).json()
    assert counted["capacity"]["x"]["fits"] == 1
    # No number of moves is enough for more.
    plan = asked(service, {"fit": {"query": query, "amount": 3}})
    assert (plan["reached"], plan["proven"], plan["optimal"]) == (False, True, False)


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
        plan = asked(client, emptying("a"), both_at_once=False)
        (move,) = plan["moves"]
        assert set(move["to"]) == {uuid_of("b"), uuid_of("p1")}
        carried_out(client, plan)
        plan = asked(client, emptying("p1"))
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
        start_on(database, tmp_path, **{"treeclaim.plan_deadline": "0.1"}) as application,
        client_of(application, **HEADERS) as client,
    ):
        assert client.put("/treeclaim/mixes/usual", json=mix).status_code == 204
        for goal in (
            emptying("a"),
            {"fit": {"query": "resources=VCPU:8", "amount": 2}},
            {"keep": {"mix": "usual", "empty_trees": True}},
        ):
            # What is given is worked out first, whatever time that takes; then there is none left.
            plan = asked(client, goal, given=given, explain=True)
            assert (plan["complete"], plan["optimal"], plan["moves"]) == (False, False, [])
            assert plan["given"] == {"placed": [100]}
