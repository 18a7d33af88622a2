# SPDX-License-Identifier: Apache-2.0
"""The room for consumers that draw from holds, and for the others (contract page 100, section 2)."""

from dataclasses import replace
from time import monotonic

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.placing.placer import Placer
from treeclaim.forest.placing.series import Series
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.extension.holds import HoldTerms
from treeclaim.model.extension.placing import Placing, PlacingRequest

HOST = uuid_of("host")
BUDGET = Budget()


def forest(used, **holds):
    world = World((Provider("host", None, {"VCPU": Stock(10, used=used)}),))
    return forest_of(world).holding(
        HeldAmounts({hold: {HOST: {"VCPU": n}} for hold, n in holds.items()})
    )


def wanted(amount):
    return candidate_request(Request((Group(resources={"VCPU": amount}),)))


def placed(room, *consumers):
    """The consumers that find a place, given the amount and the holds of each."""
    requests = tuple(
        PlacingRequest((wanted(amount),), (f"c{number}",), "p", "u", "t", holds)
        for number, (amount, *holds) in enumerate(consumers)
        for holds in (tuple(holds),)
    )
    found = Placer(room, Placing(requests, (), partial=True), {}, BUDGET).placed().placed
    return [f"c{number}" in found for number in range(len(consumers))]


def test_draws_use_the_hold_first_and_free_capacity_next():
    # Of 10 a hold has 4: the second draws 1 of its 3, so that 6 are used, and then 9.
    consumers = [(3, "h"), (3, "h"), (3,), (3,), (1, "h"), (1,)]
    assert placed(forest(4, h=4), *consumers) == [True, True, True, False, True, False]


def test_only_permitted_consumers_draw_from_a_hold():
    assert placed(forest(9, h=8, g=1), (2,), (2, "g"), (2, "h"), (8, "h")) == [
        False,
        True,
        True,
        False,
    ]


def test_hold_in_several_lists_is_counted_once():
    # Whoever draws from both takes from the first, which then has nothing for who comes after.
    assert placed(forest(10, h=4, g=4), (4, "h", "g"), (1, "h"), (4, "g"), (1, "g", "h")) == [
        True,
        False,
        True,
        False,
    ]


def test_cached_counts_are_separate_for_draws_from_holds():
    room = forest(9, h=8)
    fits = CapacityLimits(None, 10)
    request = wanted(1)
    drawing = replace(request, from_holds=("h",))
    for _ in range(2):
        assert count_capacity(room, request, fits, BUDGET)["fits"] == 1
        assert count_capacity(room, drawing, fits, BUDGET)["fits"] == 9


def test_holds_ignore_unit_limits_but_not_capacity():
    stock = {"VCPU": Stock(10, min_unit=4, max_unit=6, step_size=2)}
    room = forest_of(World((Provider("host", None, stock),)))
    requests = tuple(
        PlacingRequest((wanted(amount),), (f"c{number}",), "p", "u", "t", hold=hold)
        for number, (amount, hold) in enumerate(
            [(7, None), (7, HoldTerms()), (3, None), (3, HoldTerms()), (1, HoldTerms())]
        )
    )
    found = Placer(room, Placing(requests, (), partial=True), {}, BUDGET).placed().placed
    assert sorted(found) == ["c1", "c3"]
    series = Series(room, 10**9)
    alone = [series.place(request, monotonic() + 60) is not None for request in requests]
    assert alone == [False, True, False, True, False]
