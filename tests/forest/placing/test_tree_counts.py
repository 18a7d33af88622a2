# SPDX-License-Identifier: Apache-2.0
"""Counts and sums of trees are right after each claim."""

import json
from dataclasses import replace

import pytest

from tests.forest.building import complete, news, provider_uuid, record
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.order import Order, Term, TermName
from treeclaim.model.request import (
    BodyForm,
    CandidateRequest,
    RequestGroup,
    SearchOptions,
    ValueList,
)

HOSTS = (1, 2, 3)
WANTED = (RequestGroup("", {"VCPU": 2}),)


@pytest.fixture
def forest():
    """Three hosts of ten VCPU, asked once before anything is claimed."""
    made = Forest()
    made.apply(complete([record(number, inventories={"VCPU": 10}) for number in HOSTS]))
    assert fits(made) == ([5, 5, 5], 15, 15, 15)
    assert fullest(made) == list(HOSTS)
    return made


def claim(forest, **used):
    """Let so much be used of some hosts, named h1 and so on."""
    records = [
        record(int(name[1:]), inventories={"VCPU": (10, amount)}) for name, amount in used.items()
    ]
    forest.apply(news(*records))


def fits(forest):
    """The counts of each host and of all, now and when empty."""
    result = count_capacity(forest, CandidateRequest(WANTED), CapacityLimits((), 10), Budget())
    by_uuid = {domain["uuid"]: domain["fits"] for domain in result["domains"]}
    each = [by_uuid.get(provider_uuid(number), 0) for number in HOSTS]
    return each, result["fits"], result["at_most"], result["when_empty"]


def fullest(forest):
    """The hosts with room, the fullest first."""
    request = CandidateRequest(WANTED, order=Order((Term(TermName.PACK, ()),), ()))
    answer = b"".join(search(forest, request, SearchOptions(), BodyForm()).pieces())
    given = [
        next(iter(allocation_request["allocations"]))
        for allocation_request in json.loads(answer)["allocation_requests"]
    ]
    return [number for uuid in given for number in HOSTS if provider_uuid(number) == uuid]


@pytest.mark.parametrize("few", [0, 1, 64])
def test_counts_follow_claims_on_few_or_many_trees(forest, monkeypatch, few):
    monkeypatch.setattr(thresholds, "FEW_TREES_WRITTEN", few)
    claim(forest, h2=5)
    assert fits(forest) == ([5, 2, 5], 12, 12, 15)
    assert fullest(forest) == [2, 1, 3]
    claim(forest, h1=10, h3=8)
    assert fits(forest) == ([0, 2, 1], 3, 3, 15)
    assert fullest(forest) == [3, 2]
    claim(forest, h1=0)
    assert fits(forest) == ([5, 2, 1], 8, 8, 15)
    assert fullest(forest) == [3, 2, 1]


def test_claims_beyond_the_history_cause_a_full_recount(forest, monkeypatch):
    monkeypatch.setattr(thresholds, "MOST_WRITES_KNOWN", 2)
    for used in range(6):
        claim(forest, h1=used, h2=10 - used)
    assert fits(forest) == ([2, 2, 5], 9, 9, 15)
    assert fullest(forest) == [1, 2, 3]


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
