# SPDX-License-Identifier: Apache-2.0
"""What the demo shows of placing: a batch that spreads over racks, and what still fits."""

import time
import uuid
from collections import Counter

from rich.console import Group

from treeclaim.cli.cloud.asking.questions import capacity_table
from treeclaim.cli.cloud.changing.claims import places_table
from treeclaim.cli.printing import Printer, line
from treeclaim.client import Client, Placed, PlacingRequest, PlacingRule
from treeclaim.client.reports import Reports

_SHARING = "MISC_SHARES_VIA_AGGREGATE"
_CONSUMERS = 12
_QUERY = "resources=VCPU:2&order_by=spread"
_OWNER = "demo"

TITLE = f"{_CONSUMERS} servers in one call, equally many in each rack, the emptiest hosts first"
FLAVORS = {
    "small": "resources=VCPU:1,MEMORY_MB:1024",
    "large": "resources_NODE=VCPU:16,MEMORY_MB:32768",
    "gpu": "resources_NODE=VCPU:8&resources_GPU=VGPU:2&group_policy=none&same_subtree=_NODE,_GPU",
    "fpga": "resources_NODE=VCPU:4&resources_FPGA=FPGA:1&group_policy=none"
    "&same_subtree=_NODE,_FPGA",
}


def show_batch(out: Printer, client: Client) -> None:
    """Place a batch, and print where it went."""
    racks = _racks(client)
    rules = [PlacingRule(list(racks), max_skew=1)] if racks else []
    consumers = [str(uuid.uuid4()) for _ in range(_CONSUMERS)]
    request = PlacingRequest([_QUERY], consumers, _OWNER, _OWNER)
    # The first answer also fills caches.
    client.place([request], rules, partial=True, dry_run=True)
    begin = time.perf_counter()
    done = client.place([request], rules, partial=True)
    milliseconds = 1000 * (time.perf_counter() - begin)
    placed = (
        f"{len(done.placements)} found and claimed in {milliseconds:.1f} ms, in one transaction"
    )
    question = line(f"?{_QUERY}", style="dim")
    out.print(Group(f"{placed}{_by_rack(done, racks)}", question, places_table(done)))


def show_capacity(out: Printer, client: Client) -> None:
    """Count how many of each flavor still fit, and print that."""
    client.capacity(FLAVORS)
    begin = time.perf_counter()
    capacities = client.capacity(FLAVORS)
    milliseconds = 1000 * (time.perf_counter() - begin)
    out.print(f"{len(capacities)} flavors counted in {milliseconds:.1f} ms")
    out.print(capacity_table(capacities))


def _racks(client: Client) -> dict[str, set[str]]:
    """Return the aggregates of hosts by uuid, with the names of their roots; no shared pools'."""
    providers = list(Reports(client).providers(include=["aggregates", "traits"]))
    shared = {
        aggregate
        for provider in providers
        if _SHARING in provider["traits"]
        for aggregate in provider["aggregates"]
    }
    racks: dict[str, set[str]] = {}
    for provider in providers:
        if provider["parent_provider_uuid"] is None:
            for aggregate in set(provider["aggregates"]) - shared:
                racks.setdefault(aggregate, set()).add(provider["name"])
    return racks


def _by_rack(done: Placed, racks: dict[str, set[str]]) -> str:
    """Return how many are in each rack, in words."""
    counts: Counter[str] = Counter()
    for placement in done.placements:
        for rack, hosts in racks.items():
            counts[rack] += bool(hosts & set(placement.roots))
    return f": {' and '.join(map(str, counts.values()))} in the racks" if counts else ""
