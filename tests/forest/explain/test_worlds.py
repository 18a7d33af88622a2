# SPDX-License-Identifier: Apache-2.0
"""Explanations list the nearest trees with the reasons that a person wrote down."""

from dataclasses import replace

import pytest

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World
from treeclaim.forest.explain.explain import Focus, explain_request

CLOUD = World(
    (
        Provider("pool", None, {"DISK_GB": Stock(100)}),
        Provider("small", None, {"VCPU": Stock(4)}),
        Provider("full", None, {"VCPU": Stock(8, used=7)}),
        Provider("large", None, {"VCPU": Stock(8)}, frozenset({"HW_CPU_X86_AVX2"})),
    )
)


def nearest(*groups):
    """Return the names of the nearest trees, with the reasons why they do not match."""
    result = explain_request(forest_of(CLOUD), candidate_request(Request(groups)), Focus())
    return [
        (tree["root_provider"]["name"], [blocked["reason"] for blocked in tree["blocked_by"]])
        for tree in result["nearest"]
    ]


@pytest.mark.parametrize("suffix", ["", "_1"])
def test_nearest_trees_report_conditions_beside_amounts(suffix):
    """Trees that satisfy as many groups are in the order of creation."""
    group = Group(suffix, {"VCPU": 10}, required=(frozenset({"HW_CPU_X86_AVX2"}),))
    assert nearest(group)[1:] == [
        ("small", ["capacity", "trait_missing"]),
        ("full", ["capacity", "trait_missing"]),
        ("large", ["capacity"]),
    ]
    assert dict(nearest(replace(group, in_tree=("large",))))["small"] == [
        "capacity",
        "not_in_tree",
        "trait_missing",
    ]


def test_trees_that_satisfy_more_groups_come_first():
    groups = Group("_1", {"VCPU": 3}), Group("_2", {"VCPU": 6})
    assert nearest(*groups) == [
        ("large", ["combined_capacity"]),
        ("small", ["capacity"]),
        ("pool", ["no_inventory", "no_inventory"]),
        ("full", ["capacity", "capacity"]),
    ]
