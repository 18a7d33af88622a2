# SPDX-License-Identifier: Apache-2.0
"""Counts end at the greatest number that is shown: they do not turn over (page 98, section 1)."""

import pytest

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.candidates import SHARING
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.model.provider import MAXIMUM_INTEGER

GREATEST = 2**53 - 1
MANY = 1_100
"""The sum of this many numbers of 2**53 exceeds 64 bits."""

VAST = {"VCPU": Stock(MAXIMUM_INTEGER, allocation_ratio=1e30)}
RACK = frozenset({"A"})


def one_tree():
    nodes = [Provider(f"n{number}", "h", VAST) for number in range(MANY)]
    return World((Provider("h", aggregates=RACK), *nodes))


def many_trees():
    return World(
        tuple(Provider(f"h{number}", None, VAST, aggregates=RACK) for number in range(MANY))
    )


def pools():
    shared = frozenset({SHARING})
    pools = [Provider(f"p{number}", None, VAST, shared, RACK) for number in range(3)]
    return World((Provider("h", aggregates=RACK), *pools))


ONE_VCPU = (Group("", {"VCPU": 1}),)
TWO = (Group("_A", {"VCPU": 1}), Group("_B", {"VCPU": 2}))


@pytest.mark.parametrize("domains", [(), (uuid_of("A"),)], ids=["trees", "aggregates"])
@pytest.mark.parametrize(
    ("world", "groups"),
    [
        (one_tree, ONE_VCPU),
        (many_trees, ONE_VCPU),
        (many_trees, TWO),
        (pools, ONE_VCPU),
        (pools, TWO),
    ],
)
def test_counts_saturate_at_the_greatest_number(world, groups, domains):
    request = candidate_request(Request(groups))
    result = count_capacity(forest_of(world()), request, CapacityLimits(domains, 1), Budget())
    (part,) = result.pop("domains")
    assert result == {
        "fits": GREATEST,
        "at_most": GREATEST,
        "when_empty": GREATEST,
        "complete": True,
    }
    assert part["fits"] == GREATEST


def test_counts_below_the_greatest_number_are_exact():
    stock = {"VCPU": Stock(MAXIMUM_INTEGER, allocation_ratio=1e6, used=7)}
    nodes = [Provider(f"n{number}", "h", stock) for number in range(3)]
    request = candidate_request(Request((Group("", {"VCPU": 1_000_001}),)))
    result = count_capacity(
        forest_of(World((Provider("h"), *nodes))), request, CapacityLimits(None, 1), Budget()
    )
    each = (MAXIMUM_INTEGER * 10**6 - 7) // 1_000_001
    assert (result["fits"], result["at_most"]) == (3 * each, 3 * each)


def test_explanation_shows_no_greater_number():
    request = candidate_request(Request((Group("", {"VCPU": 2**70}),)))
    explanation = explain_request(forest_of(one_tree()), request, Focus())
    (step,) = explanation["funnel"]
    assert step["detail"] == {"resource_class": "VCPU", "requested": GREATEST}
    (blocked,) = explanation["nearest"][0]["blocked_by"]
    assert blocked["providers"][0]["requested"] == GREATEST
    assert blocked["providers"][0]["free"] == GREATEST
