# SPDX-License-Identifier: Apache-2.0
"""A search that is repeated for each consumer takes the memory of one."""

from tests.forest.building import MeasuringBudget, complete, record
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.placing.placer import Placer
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Placing, PlacingRequest
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 20
ROOM = 8
NODES = 2

# Two nodes of a host can serve each group, so each consumer is searched for.
REQUEST = CandidateRequest(
    (RequestGroup("_A", {"MEMORY_MB": 1}), RequestGroup("_B", {"MEMORY_MB": 1}))
)


def forest(room=ROOM):
    """Hosts with two nodes each."""
    made = Forest()
    records = []
    for host in range(1, HOSTS + 1):
        records.append(record(host, inventories={"DISK_GB": 1}))
        records += [
            record(100 * host + node, parent=host, root=host, inventories={"MEMORY_MB": room})
            for node in range(NODES)
        ]
    made.apply(complete(records))
    return made


def held_at_most(consumers):
    """The least memory that suffices to place so many, about."""
    call = Placing((PlacingRequest((REQUEST,), consumers, "p", "u", "t"),), ())
    budget = MeasuringBudget()
    attempt = Placer(forest(), call, {}, budget).place_all()
    assert not attempt.unplaced
    return budget.most


def test_placing_memory_does_not_grow_with_consumers():
    few, many = (held_at_most(tuple(f"c{n}" for n in range(count))) for count in (2, 50))
    assert many <= 2 * few


def test_counting_memory_does_not_grow_with_consumers():
    held = []
    for room in (ROOM, 10 * ROOM):
        budget = MeasuringBudget()
        result = count_capacity(forest(room), REQUEST, CapacityLimits(None, 1), budget)
        assert result["fits"] == HOSTS * room * NODES // 2
        held.append(budget.most)
    assert held[1] <= 1.1 * held[0]
