# SPDX-License-Identifier: Apache-2.0
"""Plans of moves in clouds that are too large for an integer program (contract page 101, section 5)."""

from tests.forest.building import forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import PlannedConsumer
from treeclaim.forest.planning.moves import move_model
from treeclaim.forest.planning.moves.planner import make_plan
from treeclaim.model.extension.moves import Keep, Moves
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 10
HALF_FULL = 4


def request_of(amount):
    """A request for some VCPU of one provider."""
    return CandidateRequest((RequestGroup("", {"VCPU": amount}),))


def test_half_full_hosts_are_joined_for_a_mix(monkeypatch):
    monkeypatch.setattr(move_model, "MOST_COLUMNS", 0)
    used = [2] * HALF_FULL + [0] * (HOSTS - HALF_FULL)
    forest = forest_of([record(at, inventories={"VCPU": (4, n)}) for at, n in enumerate(used, 1)])
    consumers = [
        PlannedConsumer(
            f"0000000{at}-0000-4000-8000-000000000000",
            "p",
            "INSTANCE",
            1,
            {provider_uuid(at): {"VCPU": 2}},
            (request_of(2),),
            (0,),
        )
        for at in range(1, HALF_FULL + 1)
    ]
    call = Moves(Keep(((request_of(4), 3),)), max_moves=10)
    plan = make_plan(forest, consumers, call, Budget())
    assert plan["before"]["fits"] == 3 * (HOSTS - HALF_FULL)
    assert plan["after"]["fits"] == 3 * (HOSTS - HALF_FULL // 2)
    assert len(plan["moves"]) == HALF_FULL // 2
    assert not plan["optimal"]
