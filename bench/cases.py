# SPDX-License-Identifier: Apache-2.0
"""The cases of the benchmark: worlds, each with its measures."""

import random
from dataclasses import replace

from bench.measures import busy, dashboards, placing, quiet
from bench.services import Case
from tests.clouds import World, WorldMaker, flat, nested, sharing, wide

BUSY, QUIET, BULK, WATCHERS, PLACING = PARTS = ("busy", "quiet", "bulk", "watchers", "placing")
"""Parts of a run."""

_HOSTS = 1000
_POOL_SIZE = 10_000_000


def _make_busy(world: World) -> World:
    return replace(world, name=f"busy cloud, {world.name}")


def _busy_flat() -> World:
    """Return a pool with capacity for all claims, followed by hosts."""
    world = flat(_HOSTS + 1)
    first, *hosts = world.providers
    pool = replace(first, name="pool", inventories={"DISK_GB": _POOL_SIZE})
    return _make_busy(replace(world, name=f"flat {_HOSTS}", providers=(pool, *hosts)))


def _scaling(trees: int, copies: int) -> World:
    """Return a world of many copies of the same trees, which is quick to write."""
    name = f"scaling {trees * copies} x 7"
    return replace(nested(trees), name=name, limits=(10, 1000), copies=copies)


def _devices(trees: int, seed: int = 11) -> World:
    """Return trees of seven: a host, two NUMA nodes, a GPU and a NIC on each; some are busy."""
    maker = WorldMaker(seed)
    dice = random.Random(seed)
    for number in range(trees):
        used = {"DISK_GB": dice.randint(1, 500)}
        root = maker.add(f"host-{number}", {"DISK_GB": 2_000}, used=used)
        for node in range(2):
            name = f"host-{number}-numa{node}"
            used = {"VCPU": dice.randint(1, 24), "MEMORY_MB": dice.randint(1, 65_536)}
            numa = maker.add(name, {"VCPU": 32, "MEMORY_MB": 131_072}, root, used=used)
            maker.add(f"{name}-gpu", {"VGPU": 8}, numa, used={"VGPU": dice.randint(1, 6)})
            maker.add(f"{name}-nic", {"SRIOV_NET_VF": 16}, numa)
    query = (
        "resources=DISK_GB:10&resources_GPU=VGPU:1&resources_NIC=SRIOV_NET_VF:1&group_policy=none"
    )
    return World(f"devices {trees} x 7", maker.providers, query, (10,))


_ONE_CLIENT = (quiet.searches, quiet.work)
_FLAT = (*_ONE_CLIENT, quiet.searches_beside_claims)
_BUSY_TREES = (busy.after_claims, busy.after_shapes)

# The open loop has its own database: earlier claims would change its figures.
CASES = (
    Case(BUSY, _busy_flat, (quiet.explain, busy.after_claims, busy.one_claim, busy.contended)),
    Case(BUSY, _busy_flat, (busy.open_loop,), has_peer=False),
    Case(BUSY, lambda: _make_busy(nested(1000)), (busy.after_claims,)),
    Case(BUSY, lambda: _make_busy(nested(10_000)), _BUSY_TREES, has_peer=False),
    Case(BUSY, lambda: _make_busy(nested(100_000)), _BUSY_TREES, has_peer=False, is_large=True),
    Case(QUIET, lambda: flat(1000), _FLAT),
    Case(QUIET, lambda: nested(1000), _ONE_CLIENT),
    Case(QUIET, lambda: sharing(1000), _ONE_CLIENT),
    Case(QUIET, lambda: wide(2, 8, 4, units=4), _ONE_CLIENT),
    Case(QUIET, lambda: flat(10_000), (quiet.searches,), has_peer=False),
    Case(QUIET, lambda: wide(2, 64, 64), (quiet.searches,), has_peer=False),
    Case(QUIET, lambda: wide(2, 63, 64), (quiet.searches,), has_peer=False),
    Case(QUIET, lambda: flat(10_000), _FLAT, is_large=True),
    Case(QUIET, lambda: nested(10_000), _ONE_CLIENT, is_large=True),
    Case(QUIET, lambda: nested(100_000), (quiet.searches,), has_peer=False, is_large=True),
    Case(QUIET, lambda: _scaling(1_429, 100), (quiet.searches,), has_peer=False, is_large=True),
    Case(BULK, lambda: flat(10_000), (dashboards.bulk,), needs_database=False),
    Case(WATCHERS, lambda: flat(1000), (dashboards.watchers,), False, needs_database=False),
    Case(PLACING, lambda: flat(10_000), (placing.place_batches,)),
    Case(PLACING, lambda: flat(10_000), (placing.search_meanwhile,), has_peer=False),
    Case(PLACING, lambda: flat(1000), (placing.place_singly,)),
    Case(
        PLACING,
        lambda: _devices(10_000),
        (placing.search_ordered, placing.count_capacity),
        needs_database=False,
    ),
)
