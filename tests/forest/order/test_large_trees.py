# SPDX-License-Identifier: Apache-2.0
"""A tree with more than 50,000 candidates may be searched heuristically (contract page 98, section 2.2)."""

from dataclasses import replace

from tests.forest.building import answer_of, distinct, forest_of, provider_uuid, record
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import (
    CandidateRequest,
    Order,
    Preference,
    RequestGroup,
    SubtreeList,
    Term,
    TermName,
)

DEVICE = "CUSTOM_DEVICE"
RACK = "00000000-0000-4000-8000-000000000001"


def host(devices, root=1):
    """A host with devices, each a pair of total and used."""
    records = [record(root, inventories={"VCPU": 64})]
    records += [
        record(root + 1 + at, root, root, {DEVICE: device}) for at, device in enumerate(devices)
    ]
    return records


def unlike(count):
    """Devices of which each is less full than the one before."""
    return [(100, 2 * (count - at)) for at in range(count)]


def isolated(groups, *names, limit=10, **conditions):
    """A request for groups with a device each, ordered by terms."""
    suffixes = tuple(f"_{number}" for number in range(groups))
    return CandidateRequest(
        tuple(RequestGroup(suffix, {DEVICE: 1}) for suffix in suffixes),
        limit=limit,
        isolated=frozenset(suffixes),
        order=Order(tuple(Term(name) for name in names)),
        **conditions,
    )


def test_eight_devices_for_eight_isolated_groups_are_searched_exactly():
    answer = answer_of(forest_of(host(unlike(8))), isolated(8, TermName.PACK_PROVIDERS, limit=2))
    every = answer_of(forest_of(host(unlike(8))), isolated(8, TermName.SPREAD, limit=10_000))
    assert "approximate" not in answer
    assert "approximate" not in every
    assert len(distinct(every)) == 10_000


def test_heuristic_finds_the_emptiest_devices():
    forest = forest_of(host(unlike(16)))
    answer = answer_of(forest, isolated(10, TermName.SPREAD_PROVIDERS))
    assert answer["approximate"] is True
    assert len(distinct(answer)) == 10
    best = sum(1 - (2 * (16 - at) + 1) / 100 for at in range(6, 16)) / 10
    assert answer["scores"][0] == round(best, 12)
    assert set(answer["allocation_requests"][0]["allocations"]) == {
        provider_uuid(2 + at) for at in range(6, 16)
    }


def test_heuristic_packs_groups_onto_devices():
    """Ten groups of 3 units: the fullest way is to fill three devices of 10 units, and begin a fourth."""
    suffixes = [f"_{number}" for number in range(10)]
    request = CandidateRequest(
        tuple(RequestGroup(suffix, {DEVICE: 3}) for suffix in suffixes),
        limit=1,
        order=Order((Term(TermName.PACK_PROVIDERS),)),
    )
    answer = answer_of(forest_of(host([(10, 0)] * 16)), request)
    assert answer["approximate"] is True
    assert answer["scores"] == [round((9 * 0.9 + 0.3) / 10, 12)]


def test_heuristic_honours_preferred_devices():
    records = host([(9, 0)] * 8)
    records += [record(20 + at, 1, 1, {DEVICE: 9}, traits=["CUSTOM_FAST"]) for at in range(8)]
    base_request = isolated(8, TermName.PREFERRED)
    preferences = tuple(Preference(group.suffix, "CUSTOM_FAST") for group in base_request.groups)
    request = replace(base_request, order=Order(base_request.order.terms, preferences))
    answer = answer_of(forest_of(records), request)
    assert answer["scores"] == [1.0] * 10


def test_sixteen_groups_are_served_by_the_fullest_pools():
    pools = [
        record(
            100 + at,
            inventories={"DISK_GB": (1000, 500 + 20 * at)},
            traits=[SHARING_TRAIT],
            aggregates=(RACK,),
        )
        for at in range(16)
    ]
    groups = tuple(RequestGroup(f"_{number}", {"DISK_GB": 1}) for number in range(16))
    request = CandidateRequest(
        (RequestGroup("", {"VCPU": 1}), *groups), limit=3, order=Order((Term(TermName.PACK),))
    )
    host_of_pools = record(1, inventories={"VCPU": 8}, aggregates=(RACK,))
    answer = answer_of(forest_of([host_of_pools, *pools]), request)
    assert answer["scores"][0] == round((1 / 8 + (800 + 16) / 1000) / 2, 12)


def test_large_tree_without_the_best_candidate_keeps_results_exact():
    forest = forest_of(host([(100, 90)] * 16) + host([(100, 0)] * 10, root=50))
    answer = answer_of(forest, isolated(10, TermName.SPREAD_PROVIDERS, limit=1))
    assert "approximate" not in answer
    assert provider_uuid(51) in answer["allocation_requests"][0]["allocations"]


def test_heuristic_finds_a_candidate_among_dead_ends():
    """Ten groups below one node, and only the last of many nodes has ten devices."""
    records = [record(1, inventories={"VCPU": 64})]
    number = 2
    for devices in (*[9] * 20, 10):
        node = number
        records.append(record(node, 1, 1, {"MEMORY_MB": 10}))
        records += [record(node + 1 + at, node, 1, {DEVICE: (9, at % 3)}) for at in range(devices)]
        number += devices + 1
    base_request = isolated(10, TermName.SPREAD_PROVIDERS, limit=5)
    groups = (RequestGroup("_NODE", {"MEMORY_MB": 1}), *base_request.groups)
    below_one_node = SubtreeList(tuple(group.suffix for group in groups), ())
    request = replace(base_request, groups=groups, same_subtree=(below_one_node,))
    answer = answer_of(forest_of(records), request)
    assert len(distinct(answer)) == 5
    nodes = {candidate["mappings"]["_NODE"][0] for candidate in answer["allocation_requests"]}
    assert nodes == {provider_uuid(number - 11)}


def test_first_candidate_of_equal_groups_is_exact():
    """Ten equal groups have 8,008 sets of sixteen devices, each in 3,628,800 orders."""
    forest = forest_of(host(unlike(16)))
    answer = answer_of(forest, isolated(10, TermName.SPREAD_PROVIDERS, limit=1))
    assert "approximate" not in answer
    (candidate,) = answer["allocation_requests"]
    emptiest = {provider_uuid(row) for row in range(8, 18)}
    assert set(candidate["allocations"]) <= emptiest
    assert len(candidate["allocations"]) == 10
