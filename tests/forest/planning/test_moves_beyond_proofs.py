# SPDX-License-Identifier: Apache-2.0
"""Plans of moves for which optimality is not promised (contract page 101, section 5.3)."""

import pytest

from tests.forest.building import forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves import move_model, planner
from treeclaim.model.extension.planning import (
    CapacityGoal,
    EvacuationGoal,
    MixGoal,
    MovableConsumers,
    MovesCall,
)
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 10
HALF_FULL = 4


def request_of(amount):
    """A request for some VCPU of one provider."""
    return CandidateRequest((RequestGroup("", {"VCPU": amount}),))


def divisible(amount):
    """A request for some VCPU of several providers of a tree."""
    return CandidateRequest((RequestGroup("", {"VCPU": amount}),), can_split=frozenset({"VCPU"}))


def consumer(number, request, allocations):
    return PlannedConsumer(
        f"0000000{number}-0000-4000-8000-000000000000",
        "p",
        "INSTANCE",
        1,
        {provider_uuid(at): {"VCPU": n} for at, n in allocations.items()},
        (request,),
        (0,),
    )


@pytest.mark.parametrize("most_trees", [2, 4, 8])
def test_half_full_hosts_are_joined_for_a_mix(monkeypatch, most_trees):
    monkeypatch.setattr(planner, "TREES_OF_A_PART", most_trees)
    monkeypatch.setattr(move_model, "MOST_COLUMNS_OF_KEEP", 30)
    used = [2] * HALF_FULL + [0] * (HOSTS - HALF_FULL)
    forest = forest_of([record(at, inventories={"VCPU": (4, n)}) for at, n in enumerate(used, 1)])
    consumers = [consumer(at, request_of(2), {at: 2}) for at in range(1, HALF_FULL + 1)]
    call = MovesCall(MixGoal(((request_of(4), 3),)), max_moves=10)
    plan = planner.find_move_plan(forest, consumers, call, Budget())
    assert plan["before"]["fits"] == 3 * (HOSTS - HALF_FULL)
    assert plan["after"]["fits"] == 3 * (HOSTS - HALF_FULL // 2)
    assert len(plan["moves"]) == HALF_FULL // 2
    assert not plan["optimal"]


@pytest.mark.parametrize(
    "goal",
    [
        EvacuationGoal((provider_uuid(10),)),
        CapacityGoal(divisible(4), 1),
        MixGoal(((divisible(4), 1),)),
    ],
    ids=["empty", "fit", "keep"],
)
@pytest.mark.parametrize("is_live", [True, False], ids=["live", "cold"])
def test_consumer_whose_amount_is_divided_moves(goal, is_live):
    used = {10: (1, 1), 20: (1, 1), 30: (1, 2)}
    records = []
    for root, nodes in used.items():
        records.append(record(root))
        records += [
            record(root + at, root, root, {"VCPU": (2, n)}) for at, n in enumerate(nodes, 1)
        ]
    consumers = [
        consumer(1, divisible(2), {11: 1, 12: 1}),
        consumer(2, divisible(2), {21: 1, 22: 1}),
        consumer(3, divisible(3), {31: 1, 32: 2}),
    ]
    fixed = frozenset({consumers[2].uuid})
    call = MovesCall(goal, MovableConsumers(excepted=fixed), both_at_once=is_live)
    plan = planner.find_move_plan(forest_of(records), consumers, call, Budget())
    assert plan["reached"]
    (move,) = plan["moves"]
    assert sum(allocation["resources"]["VCPU"] for allocation in move["to"].values()) == 2
    assert {to_root["uuid"] for to_root in move["to_roots"]} <= {
        provider_uuid(10),
        provider_uuid(20),
    }
    if not isinstance(goal, EvacuationGoal):
        assert (plan["before"]["fits"], plan["after"]["fits"]) == (0, 1)
