# SPDX-License-Identifier: Apache-2.0
"""Consumers are counted in many trees at once (contract page 98, section 5)."""

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.request import CandidateRequest


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
