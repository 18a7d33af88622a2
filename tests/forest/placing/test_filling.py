# SPDX-License-Identifier: Apache-2.0
"""Consumers are counted in many trees at once (contract page 98, section 5)."""

import time

from tests.forest.building import complete, record
from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.request import CandidateRequest, RequestGroup

HOSTS = 1000


def test_held_partitions_free_their_consumption():
    """Two hosts have a card of four slices each; three partitions of the first are held."""
    providers = []
    for host in ("a", "b"):
        used = 3 if host == "a" else 0
        uses: dict[str, tuple[tuple[str, str, int], ...]]
        uses = {"FPGA": ((f"{host}card", "DISK_GB", 1),)}
        providers += [
            Provider(host),
            Provider(f"{host}card", host, {"DISK_GB": Stock(4)}),
            Provider(f"{host}part", f"{host}card", {"FPGA": Stock(7, used=used)}, consumes=uses),
        ]
    by_hold = {"hold": {uuid_of("apart"): {"FPGA": 3}}}
    forest = forest_of(World(tuple(providers))).holding(HeldAmounts(by_hold))
    wanted = candidate_request(Request((Group("_C", {"FPGA": 1}),)))
    counted = count_capacity(forest, wanted, CapacityLimits((), 10), Budget())
    assert (counted["fits"], counted["when_empty"]) == (5, 8)
    request = CandidateRequest(wanted.groups, from_holds=("hold",))
    counted = count_capacity(forest, request, CapacityLimits((), 10), Budget())
    assert (counted["fits"], counted["when_empty"]) == (8, 8)
    assert [domain["fits"] for domain in counted["domains"]] == [4, 4]


def test_differently_used_hosts_are_counted_quickly():
    records = []
    for host in range(HOSTS):
        root = 3 * host + 1
        records.append(record(root))
        for node in (1, 2):
            stock = {
                "VCPU": (64, host * node % 41),
                "MEMORY_MB": (262_144, 17 * host * node % 9973),
            }
            records.append(record(root + node, root, root, inventories=stock))
    forest = Forest()
    forest.apply(complete(records))
    cells = tuple(RequestGroup(f"_{name}", {"VCPU": 4, "MEMORY_MB": 8192}) for name in "AB")
    request = CandidateRequest(cells, isolated=frozenset({"_A", "_B"}))
    began = time.process_time()
    counted = count_capacity(forest, request, CapacityLimits(None, 0), Budget())
    assert time.process_time() - began < 1
    assert 0 < counted["fits"] < counted["when_empty"] == 16 * HOSTS
