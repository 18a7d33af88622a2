# SPDX-License-Identifier: Apache-2.0
"""Trees with many equal children: no explosion, and every tree represented when asked."""

import itertools
import math
import tracemalloc

import pytest

from tests.forest.building import (
    answer_of,
    distinct,
    forest_of,
    record,
    roots_used,
    wide_trees,
)
from treeclaim.forest.feasibility.assignment import assignable
from treeclaim.model.request import (
    CandidateRequest,
    ProviderConditions,
    RequestGroup,
    SearchOptions,
)


def suffixes_of(groups, isolate=True):
    return frozenset(group.suffix for group in groups if group.suffix and isolate)


def request_for(groups, *, isolate=False, limit=None, root_too=True):
    asked = [RequestGroup(f"_{number}", {"CUSTOM_DEVICE": 1}) for number in range(groups)]
    if root_too:
        asked.insert(0, RequestGroup("", {"VCPU": 1}))
    return CandidateRequest(tuple(asked), isolated=suffixes_of(asked, isolate), limit=limit)


# Contract page 90, section 6: two hosts (or one) with eight children each.
@pytest.mark.parametrize(
    ("hosts", "units", "groups", "cap", "breadth_first", "limit", "found", "hosts_seen"),
    [
        (2, 8, 4, None, True, 1000, 1000, 2),
        (2, 8, 6, 100_000, False, 1000, 1000, 1),
        (2, 8, 6, 100_000, True, 1000, 1000, 2),
        (2, 8, 4, 8000, True, 9000, 8000, 2),
        (2, 8, 4, None, False, 9000, 8192, 2),
        (1, 1, 8, 1000, False, 10_000, 1000, 1),
    ],
)
def test_operator_options_give_the_documented_candidates(
    hosts, units, groups, cap, breadth_first, limit, found, hosts_seen
):
    forest = forest_of(wide_trees(hosts, 8, units))
    options = SearchOptions(maximum=cap, breadth_first=breadth_first)
    answer = answer_of(forest, request_for(groups, limit=limit), options)
    assert len(answer["allocation_requests"]) == found
    assert len(distinct(answer)) == found
    assert len(roots_used(answer)) == hosts_seen


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("groups", [21, 32, 48, 64])
@pytest.mark.parametrize("cap", [10, 100, 1000])
def test_groups_filling_all_children_reach_the_cap_on_every_host(hosts, groups, cap):
    forest = forest_of(wide_trees(hosts, groups))
    options = SearchOptions(maximum=cap, breadth_first=True)
    answer = answer_of(forest, request_for(groups), options)
    assert len(distinct(answer)) == cap
    assert len(roots_used(answer)) == hosts


def test_all_permutations_are_found_once():
    forest = forest_of(wide_trees(1, 5))
    answer = answer_of(forest, request_for(5, isolate=True))
    assert len(distinct(answer)) == len(answer["allocation_requests"]) == math.factorial(5)


def test_memory_does_not_grow_with_combinations_that_are_not_returned():
    forest = forest_of(wide_trees(2, 64))
    request = request_for(64, isolate=True, limit=10)
    answer_of(forest, request)
    tracemalloc.start()
    answer_of(forest, request)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_picky_groups_do_not_cause_endless_dead_ends():
    # Twelve equal children serve the plain groups; the picky groups need the last ones in id
    # order, which the plain groups would take first if nobody looked ahead.
    records = wide_trees(1, 24)
    records[13:] = [
        record(one.id, 1, 1, {"CUSTOM_DEVICE": 1}, ["CUSTOM_FAST"]) for one in records[13:]
    ]
    plain = [RequestGroup(f"_p{number}", {"CUSTOM_DEVICE": 1}) for number in range(12)]
    picky = [
        RequestGroup(
            f"_q{number}",
            {"CUSTOM_DEVICE": 1},
            ProviderConditions(required=(frozenset({"CUSTOM_FAST"}),)),
        )
        for number in range(12)
    ]
    forest = forest_of(records)
    asked = (*plain, *picky)
    request = CandidateRequest(asked, isolated=suffixes_of(asked), limit=50)
    assert len(distinct(answer_of(forest, request))) == 50


@pytest.mark.parametrize("capacity", [(1, 1, 1), (2, 0, 1), (3, 0, 0), (1, 2, 0)])
def test_assignment_agrees_with_brute_force(capacity):
    places = range(3)
    choices = [chosen for size in range(4) for chosen in itertools.combinations(places, size)]
    for options in itertools.product(choices, repeat=3):
        expected = any(
            all(pick.count(place) <= capacity[place] for place in places)
            for pick in itertools.product(*options)
        )
        assert assignable(options, dict(enumerate(capacity))) == expected, options


def test_random_sample_has_the_requested_size_without_repeats():
    forest = forest_of(wide_trees(2, 8, 8))
    options = SearchOptions(randomize=True)
    request = request_for(4, limit=100)
    first = answer_of(forest, request, options)
    second = answer_of(forest, request, options)
    assert len(distinct(first)) == len(distinct(second)) == 100
    assert distinct(first) != distinct(second)
    assert len(roots_used(first)) == 2
    everything = answer_of(forest, request_for(3), options)
    assert len(distinct(everything)) == 2 * 8**3
