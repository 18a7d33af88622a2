# SPDX-License-Identifier: Apache-2.0
"""Explanations of the small worlds are those that a person wrote down."""

import pytest

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World
from tests.worlds.table import BY_NAME, IDS, QUESTIONS
from treeclaim.forest.explain.explain import Focus, explain_request


@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_explanation_is_feasible_if_candidates_exist(small, question):
    result = explain_request(forest_of(small.world), candidate_request(question.request), Focus())
    assert result["feasible"] == bool(question.answer)
    assert result["trees"]["considered"] == sum(
        provider.parent is None for provider in small.world.providers
    )
    assert bool(result["advice"]) <= (not question.answer)


def test_explanation_reports_fit_when_empty():
    small = BY_NAME["a host in use with picky amounts"]
    (question,) = [
        question for question in small.questions if question.query == "resources=VCPU:8"
    ]
    result = explain_request(forest_of(small.world), candidate_request(question.request), Focus())
    assert (result["feasible"], result["fits_when_empty"]) == (False, True)


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
        (one["root_provider"]["name"], [blocked["reason"] for blocked in one["blocked_by"]])
        for one in result["nearest"]
    ]


@pytest.mark.parametrize("suffix", ["", "_1"])
def test_trees_that_satisfy_no_group_are_in_order_of_creation(suffix):
    assert nearest(Group(suffix, {"VCPU": 10})) == [
        ("pool", ["no_inventory"]),
        ("small", ["capacity"]),
        ("full", ["capacity"]),
        ("large", ["capacity"]),
    ]


def test_trees_that_satisfy_more_groups_come_first():
    groups = Group("_1", {"VCPU": 3}), Group("_2", {"VCPU": 6})
    assert nearest(*groups) == [
        ("large", ["combined_capacity"]),
        ("small", ["capacity"]),
        ("pool", ["no_inventory", "no_inventory"]),
        ("full", ["capacity", "capacity"]),
    ]


@pytest.mark.parametrize("suffix", ["", "_1"])
@pytest.mark.parametrize("named", ["small", "full"])
def test_other_trees_than_the_named_one_are_blocked_by_in_tree(suffix, named):
    blocked = dict(nearest(Group(suffix, {"VCPU": 10}, in_tree=(named,))))
    assert blocked.pop(named) == ["capacity"]
    assert blocked.pop("pool")[0] == "no_inventory"
    assert all(reasons == ["capacity", "not_in_tree"] for reasons in blocked.values())


@pytest.mark.parametrize("suffix", ["", "_1"])
def test_failed_conditions_are_reported_beside_amounts(suffix):
    """Without the classes that it asks for, a group without a suffix asks for nothing at all."""
    group = Group(suffix, {"VCPU": 10}, required=(frozenset({"HW_CPU_X86_AVX2"}),))
    assert nearest(group)[1:] == [
        ("small", ["capacity", "trait_missing"]),
        ("full", ["capacity", "trait_missing"]),
        ("large", ["capacity"]),
    ]


def consuming_worlds():
    """A host with a card, and two partitions of which each unit takes two of its eight slices."""
    takes: dict[str, tuple[tuple[str, str, int], ...]] = {"FPGA": (("card", "DISK_GB", 2),)}
    for used in (0, 8):
        yield World(
            (
                Provider("host", None, {"VCPU": Stock(4)}),
                Provider("card", "host", {"DISK_GB": Stock(8, used=used)}),
                Provider("one", "card", {"FPGA": Stock(4)}, consumes=takes),
                Provider("other", "card", {"FPGA": Stock(4)}, consumes=takes),
            )
        )


@pytest.mark.parametrize(
    ("amounts", "split", "told_free", "told_full"),
    [
        # What is divided is judged beside what another class consumes, not for it.
        ({"FPGA": 1, "VCPU": 1}, {"VCPU"}, [], ["consumed"]),
        ({"FPGA": 5, "VCPU": 1}, {"VCPU"}, ["capacity"], ["capacity"]),
        # Each of its parts would find room, but not both.
        ({"FPGA": 5}, {"FPGA"}, ["capacity"], ["capacity"]),
        ({"FPGA": 4, "VCPU": 1}, {"FPGA", "VCPU"}, [], ["capacity"]),
        ({"FPGA": 2, "DISK_GB": 5}, {"DISK_GB"}, ["combined_capacity"], ["capacity"]),
        ({"FPGA": 2, "DISK_GB": 5}, {"FPGA"}, ["combined_capacity"], ["capacity"]),
    ],
)
def test_explanation_separates_split_and_consumed_amounts(amounts, split, told_free, told_full):
    request = Request((Group("", amounts),), can_split=frozenset(split))
    told = [
        explain_request(forest_of(world), candidate_request(request), Focus())
        for world in consuming_worlds()
    ]
    assert [[step["reason"] for step in one["funnel"]] for one in told] == [told_free, told_full]
    for one in told:
        assert one["feasible"] == (not one["funnel"])


@pytest.mark.parametrize(("amount", "reasons"), [(2, []), (3, ["combined_capacity"])])
def test_split_amount_taken_by_another_group_is_not_reported_missing(amount, reasons):
    """The group finds inventory, and room, as long as the two are not counted together."""
    world = World((Provider("host", None, {"VCPU": Stock(4)}),))
    groups = Group("", {"VCPU": 2}), Group("_X", {"VCPU": amount})
    request = Request(groups, can_split=frozenset({"VCPU"}))
    result = explain_request(forest_of(world), candidate_request(request), Focus())
    blocked = [one["reason"] for tree in result["nearest"] for one in tree["blocked_by"]]
    assert [step["reason"] for step in result["funnel"]] == blocked == reasons
