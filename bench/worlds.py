# SPDX-License-Identifier: Apache-2.0
"""Worlds to measure in, and the question that each is made for. The same seed, the same world."""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

SHARING = "MISC_SHARES_VIA_AGGREGATE"


@dataclass(frozen=True, slots=True)
class BenchProvider:
    """A provider to create.

    Attributes:
        uuid, name: Its identity.
        parent: Uuid of the parent, None for a root.
        inventories: Totals by resource class.
        traits, aggregates: Names, uuids.
    """

    uuid: str
    name: str
    parent: str | None = None
    inventories: dict[str, int] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """Providers, parents first, and the query to ask.

    Attributes:
        name: Short.
        providers: What to create.
        query: Of GET /allocation_candidates, without a limit.
        limits: Limits to ask with; None for no limit.
        claim: Amounts that the claim benchmark takes from a provider; empty for none.
    """

    name: str
    providers: tuple[BenchProvider, ...]
    query: str
    limits: tuple[int | None, ...]
    claim: dict[str, int] = field(default_factory=dict)


class _Maker:
    """Makes providers with uuids from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.made: list[BenchProvider] = []

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def add(
        self,
        name: str,
        inventories: dict[str, int],
        parent: str | None = None,
        traits: tuple[str, ...] = (),
        aggregates: tuple[str, ...] = (),
    ) -> str:
        one = BenchProvider(self.uuid(), name, parent, inventories, traits, aggregates)
        self.made.append(one)
        return one.uuid


_HOST = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
_FLAT_QUERY = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10"


def flat(hosts: int, seed: int = 1) -> World:
    """Hosts without children."""
    maker = _Maker(seed)
    aggregates = [maker.uuid() for _ in range(5)]
    for number in range(hosts):
        maker.add(
            f"flat-{number}",
            _HOST,
            traits=("HW_CPU_X86_AVX2", "COMPUTE_VOLUME_MULTI_ATTACH"),
            aggregates=(aggregates[number % 5],),
        )
    return World(
        f"flat {hosts}",
        tuple(maker.made),
        _FLAT_QUERY,
        (None, 10, 1000),
        {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10},
    )


def nested(trees: int, seed: int = 2) -> World:
    """Trees of seven: a host, two NUMA nodes, two devices on each."""
    maker = _Maker(seed)
    for number in range(trees):
        root = maker.add(f"nested-{number}", {"DISK_GB": 2_000})
        for node in range(2):
            numa = maker.add(
                f"nested-{number}-numa{node}",
                {"VCPU": 32, "MEMORY_MB": 131_072},
                root,
                ("HW_NUMA_ROOT",),
            )
            for device in range(2):
                maker.add(f"nested-{number}-numa{node}-fpga{device}", {"FPGA": 1}, numa)
    query = (
        "resources_COMPUTE=VCPU:1,MEMORY_MB:512&resources_ACCEL=FPGA:1"
        "&group_policy=none&same_subtree=_COMPUTE,_ACCEL"
    )
    return World(f"nested {trees} x 7", tuple(maker.made), query, (None, 10, 1000))


def sharing(hosts: int, hosts_per_pool: int = 50, seed: int = 3) -> World:
    """Hosts without disks, and pools that lend them some."""
    maker = _Maker(seed)
    for pool in range(-(-hosts // hosts_per_pool)):
        aggregate = maker.uuid()
        maker.add(
            f"pool-{pool}", {"DISK_GB": 1_000_000}, traits=(SHARING,), aggregates=(aggregate,)
        )
        for number in range(min(hosts_per_pool, hosts - pool * hosts_per_pool)):
            maker.add(
                f"sharing-{pool}-{number}",
                {"VCPU": 64, "MEMORY_MB": 262_144},
                aggregates=(aggregate,),
            )
    return World(f"sharing {hosts}", tuple(maker.made), _FLAT_QUERY, (None, 10))


def wide(trees: int, children: int, groups: int, units: int = 1, seed: int = 4) -> World:
    """Trees of equal children, and as many groups that each want one unit of a child."""
    maker = _Maker(seed)
    for number in range(trees):
        root = maker.add(f"wide-{number}", {"VCPU": 64})
        for child in range(children):
            maker.add(f"wide-{number}-{child}", {"FPGA": units}, root)
    wanted = "&".join(f"resources{number}=FPGA:1" for number in range(1, groups + 1))
    return World(
        f"wide {trees} x {children}, {groups} groups",
        tuple(maker.made),
        f"resources=VCPU:1&{wanted}&group_policy=none",
        (1000,),
    )


SHORT: tuple[Callable[[], World], ...] = (
    lambda: flat(1000),
    lambda: nested(1000),
    lambda: sharing(1000),
    lambda: wide(2, 8, 4, units=4),
)
"""Worlds that are measured against a peer."""

ALONE: tuple[Callable[[], World], ...] = (
    lambda: flat(10_000),
    lambda: wide(2, 64, 64),
    lambda: wide(2, 63, 64),
)
"""Worlds that no peer finishes in reasonable time."""
