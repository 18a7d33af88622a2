# SPDX-License-Identifier: Apache-2.0
"""Trees with many equal children need little memory and time.

`tests/conformance/gabbits/search-*.yaml` has the numbers of candidates (contract page 90, section 6).
"""

import itertools
import math

import pytest

from tests.budgets import traced_memory
from tests.forest.building import (
    answer_of,
    distinct,
    forest_of,
    record,
    wide_trees,
)
from treeclaim.forest.feasibility.joint_feasibility import can_assign
from treeclaim.model.errors import SearchTooLargeError
from treeclaim.model.request import (
    CandidateRequest,
    ProviderConditions,
    RequestGroup,
    SearchOptions,
)


def suffixes_of(groups, isolate=True):
    return frozenset(group.suffix for group in groups if group.suffix and isolate)


def request_for(groups, *, isolate=False, limit=None, root_too=True):
    groups_of_request = [
        RequestGroup(f"_{number}", {"CUSTOM_DEVICE": 1}) for number in range(groups)
    ]
    if root_too:
        groups_of_request.insert(0, RequestGroup("", {"VCPU": 1}))
    return CandidateRequest(
        tuple(groups_of_request), isolated=suffixes_of(groups_of_request, isolate), limit=limit
    )


def test_all_permutations_are_found_once():
    forest = forest_of(wide_trees(1, 5))
    answer = answer_of(forest, request_for(5, isolate=True))
    assert len(distinct(answer)) == len(answer["allocation_requests"]) == math.factorial(5)


def test_memory_does_not_grow_with_combinations_that_are_not_returned():
    forest = forest_of(wide_trees(2, 64))
    request = request_for(64, isolate=True, limit=10)
    answer_of(forest, request)
    with traced_memory() as measure:
        answer_of(forest, request)
        _, peak = measure()
    assert peak < 20_000_000


def test_search_over_its_memory_limit_is_refused():
    """To choose at random among all, it has to hold all."""
    options = SearchOptions(seconds=60, most_bytes=5_000_000, randomize=True)
    with pytest.raises(SearchTooLargeError):
        answer_of(forest_of(wide_trees(1, 40)), request_for(6, root_too=False), options)


def test_picky_groups_do_not_cause_endless_dead_ends():
    # Twelve equal children serve the plain groups; the picky groups need the last ones in id
    # order, which the plain groups would take first without looking ahead.
    records = wide_trees(1, 24)
    records[13:] = [
        record(device.id, 1, 1, {"CUSTOM_DEVICE": 1}, ["CUSTOM_FAST"]) for device in records[13:]
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
    all_groups = (*plain, *picky)
    request = CandidateRequest(all_groups, isolated=suffixes_of(all_groups), limit=50)
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
        assert can_assign(options, dict(enumerate(capacity))) == expected, options
