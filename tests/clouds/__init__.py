# SPDX-License-Identifier: Apache-2.0
"""Worlds to measure in, each with its query. Equal seeds make equal worlds."""

import random
import uuid
from dataclasses import dataclass, field

SHARING = "MISC_SHARES_VIA_AGGREGATE"


@dataclass(frozen=True, slots=True)
class BenchProvider:
    """A provider to create.

    Attributes:
        uuid, name: Its identity.
        parent: Uuid of the parent, None for a root.
        inventories: Totals by resource class.
        used: Claimed amounts, by resource class.
        traits, aggregates: Names, uuids.
    """

    uuid: str
    name: str
    parent: str | None = None
    inventories: dict[str, int] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    used: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """Providers, parents first, and the query.

    Attributes:
        name: Short.
        providers: The providers to create.
        query: Query of GET /allocation_candidates, without a limit.
        limits: Values of `limit`; None for no limit.
        claim: Amounts that the claim benchmark takes from a provider; empty for none.
        copies: How often the database has each provider, under other names; a million providers
            are made there in seconds.
    """

    name: str
    providers: tuple[BenchProvider, ...]
    query: str
    limits: tuple[int | None, ...]
    claim: dict[str, int] = field(default_factory=dict)
    copies: int = 1

    def question(self, number: int) -> str:
        """Return the query, with another amount of memory for each number."""
        return self.query.replace("MEMORY_MB:512", f"MEMORY_MB:{512 + number}")

    @property
    def size(self) -> int:
        """Return the number of providers in the database."""
        return len(self.providers) * self.copies

    @property
    def has_questions(self) -> bool:
        """Return whether the query can be varied."""
        return "MEMORY_MB:512" in self.query


class WorldMaker:
    """Makes providers with uuids from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._made: list[BenchProvider] = []

    @property
    def providers(self) -> tuple[BenchProvider, ...]:
        return tuple(self._made)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def add(
        self,
        name: str,
        inventories: dict[str, int],
        parent: str | None = None,
        traits: tuple[str, ...] = (),
        aggregates: tuple[str, ...] = (),
        *,
        used: dict[str, int] | None = None,
    ) -> str:
        """Add a provider; return its uuid."""
        provider = BenchProvider(
            self.uuid(), name, parent, inventories, traits, aggregates, used or {}
        )
        self._made.append(provider)
        return provider.uuid


_HOST = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
_FLAT_QUERY = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10"


def flat(hosts: int, seed: int = 1) -> World:
    """Hosts without children."""
    maker = WorldMaker(seed)
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
        maker.providers,
        _FLAT_QUERY,
        (None, 10, 1000),
        {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 10},
    )


def nested(trees: int, seed: int = 2) -> World:
    """Trees of seven: a host, two NUMA nodes, two devices on each."""
    maker = WorldMaker(seed)
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
    return World(f"nested {trees} x 7", maker.providers, query, (None, 10, 1000))


def sharing(hosts: int, hosts_per_pool: int = 50, seed: int = 3) -> World:
    """Hosts without disks, and pools that lend them some."""
    maker = WorldMaker(seed)
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
    return World(f"sharing {hosts}", maker.providers, _FLAT_QUERY, (None, 10))


def wide(
    trees: int,
    children: int,
    groups: int,
    units: int = 1,
    *,
    seed: int = 4,
    limits: tuple[int | None, ...] = (1000,),
) -> World:
    """Trees of equal children, and as many groups that each want one unit of a child."""
    maker = WorldMaker(seed)
    for number in range(trees):
        root = maker.add(f"wide-{number}", {"VCPU": 64})
        for child in range(children):
            maker.add(f"wide-{number}-{child}", {"FPGA": units}, root)
    wanted = "&".join(f"resources{number}=FPGA:1" for number in range(1, groups + 1))
    return World(
        f"wide {trees} x {children}, {groups} groups",
        maker.providers,
        f"resources=VCPU:1&{wanted}&group_policy=none",
        limits,
    )
