# SPDX-License-Identifier: Apache-2.0
"""The room for consumers that draw from holds, and for the others (contract page 100, section 2)."""

from dataclasses import replace

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.table.held import HeldAmounts

HOST = uuid_of("host")
BUDGET = Budget()


def forest(used, **holds):
    world = World((Provider("host", None, {"VCPU": Stock(10, used=used)}),))
    return forest_of(world).holding(
        HeldAmounts({hold: {HOST: {"VCPU": n}} for hold, n in holds.items()})
    )


def wanted(amount):
    return candidate_request(Request((Group(resources={"VCPU": amount}),)))


def test_cached_counts_are_separate_for_draws_from_holds():
    room = forest(9, h=8)
    fits = CapacityLimits(None, 10)
    request = wanted(1)
    drawing = replace(request, from_holds=("h",))
    for _ in range(2):
        assert count_capacity(room, request, fits, BUDGET)["fits"] == 1
        assert count_capacity(room, drawing, fits, BUDGET)["fits"] == 9
