# SPDX-License-Identifier: Apache-2.0
"""All in one domain: one domain after the other is tried."""

from tests.forest.building import forest_of, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest, PlacingRule
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 40
ROOMY = 37
"""The only host with room for all."""

WANTED = RequestGroup("", {"VCPU": 2})
TOGETHER = PlacingRule(
    domains=None,
    same_domain=True,
    requests=frozenset({0}),
)


def cloud(room_of_others):
    """Hosts with nodes, of which one has room for three consumers."""
    records = []
    for host in range(1, HOSTS + 1):
        root = host * 10
        units = 3 if host == ROOMY else room_of_others
        records.append(record(root))
        records += [
            record(root + 1 + at, root, root, {"VCPU": (8, 8 - part)})
            for at, part in enumerate([units * 2, 1])
        ]
    return forest_of(records)


def placed(forest, order, consumers=("a", "b", "c")):
    """Where consumers go that must be together, by consumer."""
    request = PlacingRequest((CandidateRequest((WANTED,), order=order),), consumers, "p", "u", "t")
    attempt = ConsumerPlacer(
        forest, PlacingCall((request,), (TOGETHER,)), {}, Budget()
    ).place_all()
    return {
        name: [*placement.allocations] for name, placement in attempt.placed.items()
    }, attempt.unplaced


def test_capacity_is_restored_after_a_failed_domain():
    forest = cloud(room_of_others=2)
    where, unplaced = placed(forest, None)
    assert unplaced == []
    assert set(map(tuple, where.values())) == {(provider_uuid(ROOMY * 10 + 1),)}
    # With room for two each, the domain that got furthest is the first of equals.
    where, unplaced = placed(forest, None, ("a", "b", "c", "d"))
    assert set(map(tuple, where.values())) == {(provider_uuid(ROOMY * 10 + 1),)}
    assert unplaced == ["d"]


def test_alternatives_of_a_request_add_up_in_a_domain():
    forest = forest_of(
        [
            record(10, inventories={"VCPU": (3, 0)}),
            record(20, inventories={"VCPU": (2, 0), "DISK_GB": (2, 0)}),
        ]
    )
    alternatives = tuple(
        CandidateRequest((RequestGroup("", {name: 1}),)) for name in ("VCPU", "DISK_GB")
    )
    request = PlacingRequest(alternatives, ("a", "b", "c", "d"), "p", "u", "t")
    attempt = ConsumerPlacer(
        forest, PlacingCall((request,), (TOGETHER,)), {}, Budget()
    ).place_all()
    assert attempt.unplaced == []
    assert {tuple(placement.allocations) for placement in attempt.placed.values()} == {
        (provider_uuid(20),)
    }
