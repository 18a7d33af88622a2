# SPDX-License-Identifier: Apache-2.0
"""Counts and sums of trees are right after each claim."""

from dataclasses import replace

import pytest

from tests.forest.building import complete, news, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.table.forest import Forest
from treeclaim.model.request import (
    CandidateRequest,
    RequestGroup,
    ValueList,
)


def test_equal_counts_diverge_after_a_release():
    """While nothing fits all three counts are the same; they are not the same array."""
    request = CandidateRequest(
        (RequestGroup("_A", {"VCPU": 2}), RequestGroup("_B", {"VCPU": 3})),
        isolated=frozenset({"_A", "_B"}),
    )

    def nodes(used):
        return [
            record(1),
            record(2, 1, 1, inventories={"VCPU": (7, used)}),
            record(3, 1, 1, inventories={"VCPU": (3, used)}),
        ]

    forest = Forest()
    forest.apply(complete(nodes(3)))
    counted = count_capacity(forest, request, CapacityLimits(None, 10), Budget())
    assert (counted["fits"], counted["at_most"]) == (0, 0)
    result = news(*nodes(0))
    forest.apply(result)
    counted = count_capacity(forest, request, CapacityLimits(None, 10), Budget())
    assert (counted["fits"], counted["at_most"]) == (1, 2)


@pytest.mark.parametrize("is_same", [True, False])
def test_devices_behind_switches_are_counted(is_same):
    """Each host has two switches, and devices behind these: their names say nothing but which are alike."""
    records = []
    for host in range(12):
        root = host * 10 + 1
        records.append(record(root, attributes={"switch": f"{host} of all"}))
        records += [
            record(
                root + number,
                root,
                root,
                {"CUSTOM_DEVICE": 2},
                attributes={"switch": f"{'ab'[number % 2]}-{host}"} if number < 6 else {},
            )
            for number in range(1, 8)
        ]
    # In the last one a device is behind another switch.
    records[-2] = replace(records[-2], attributes={"switch": "a-11"})
    made = Forest()
    made.apply(complete(records))
    groups = tuple(RequestGroup(f"_{name}", {"CUSTOM_DEVICE": 1}) for name in "AB")
    request = CandidateRequest(groups, values=(ValueList("switch", ("_A", "_B"), is_same),))
    result = count_capacity(made, request, CapacityLimits((), 20), Budget())
    each = {domain["uuid"]: domain["fits"] for domain in result["domains"]}
    assert [each[provider_uuid(host * 10 + 1)] for host in range(12)] == [
        5 if is_same else 4
    ] * 11 + [6]
