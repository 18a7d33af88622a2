# SPDX-License-Identifier: Apache-2.0
"""Worlds as real clouds look: full ones, mixed generations, NUMA hosts with devices and NICs."""

import random

import os_traits

from tests.clouds import SHARING, World, WorldMaker

_HOST = {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000}
_FULL = 0.95


def busy(hosts: int, seed: int = 5) -> World:
    """Hosts of which 95 in a hundred have no room left for the flavor that is asked for."""
    maker = WorldMaker(seed)
    dice = random.Random(seed)
    for number in range(hosts):
        is_full = dice.random() < _FULL
        used = {name: total if is_full else total // 2 for name, total in _HOST.items()}
        maker.add(f"busy-{number}", _HOST, used=used)
    return World(
        f"busy {hosts}", maker.providers, "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10", (None, 10)
    )


def generations(hosts: int, seed: int = 6) -> World:
    """Hosts of eight hardware generations, twenty to forty traits on each, three aggregates."""
    maker = WorldMaker(seed)
    dice = random.Random(seed)
    features = sorted(trait for trait in os_traits.get_traits() if trait.startswith("HW_CPU_X86"))
    kinds = [dice.sample(features, dice.randint(20, 40)) for _ in range(8)]
    zones = [maker.uuid() for _ in range(4)]
    racks = [maker.uuid() for _ in range(max(hosts // 40, 1))]
    tenants = [maker.uuid() for _ in range(20)]
    for number in range(hosts):
        cores = dice.choice((32, 64, 96, 128))
        maker.add(
            f"host-{number}",
            {"VCPU": cores * 4, "PCPU": cores, "MEMORY_MB": cores * 4096, "DISK_GB": 4_000},
            traits=tuple(dice.choice(kinds)),
            aggregates=(zones[number % 4], racks[number // 40 % len(racks)], dice.choice(tenants)),
        )
    wanted = ",".join(kinds[0][:3])
    query = (
        f"resources=PCPU:4,MEMORY_MB:512,DISK_GB:40&required={wanted}"
        f"&member_of=in:{zones[0]},{zones[1]}&member_of=!{tenants[0]}"
    )
    return World(f"generations {hosts}", maker.providers, query, (None, 10, 1000))


def telco(hosts: int, seed: int = 7) -> World:
    """Hosts as Nova, Neutron and Cyborg report them together.

    Two NUMA nodes with dedicated CPUs, memory pages and an FPGA; two NICs under the network
    agent with four physical functions each, on two physical networks, with bandwidth; disks from a
    pool for fifty hosts.
    """
    maker = WorldMaker(seed)
    pools = [maker.uuid() for _ in range(-(-hosts // 50))]
    for number, aggregate in enumerate(pools):
        maker.add(
            f"pool-{number}", {"DISK_GB": 500_000}, traits=(SHARING,), aggregates=(aggregate,)
        )
    for number in range(hosts):
        _telco_host(maker, f"telco-{number}", pools[number // 50])
    # With a suffix, as openstack-placement leaves candidates out where pools alone serve the
    # unsuffixed group (docs/differences.md).
    query = (
        "resources_DISK=DISK_GB:20"
        "&resources_CPU=PCPU:4,MEMORY_MB:512&required_CPU=HW_NUMA_ROOT"
        "&resources_ACCEL=FPGA:1&same_subtree=_CPU,_ACCEL"
        "&resources_PORT1=SRIOV_NET_VF:1,NET_BW_EGR_KILOBIT_PER_SEC:1000000"
        "&required_PORT1=CUSTOM_PHYSNET_1"
        "&resources_PORT2=SRIOV_NET_VF:1,NET_BW_EGR_KILOBIT_PER_SEC:1000000"
        "&required_PORT2=CUSTOM_PHYSNET_2&group_policy=none"
    )
    return World(f"telco {hosts}", maker.providers, query, (10, 1000))


def _telco_host(maker: WorldMaker, name: str, pool: str) -> None:
    root = maker.add(name, {}, aggregates=(pool,), traits=("COMPUTE_NODE",))
    for node in range(2):
        numa = maker.add(
            f"{name}-numa{node}",
            {"PCPU": 24, "VCPU": 32, "MEMORY_MB": 196_608},
            root,
            ("HW_NUMA_ROOT",),
        )
        maker.add(f"{name}-numa{node}-fpga", {"FPGA": 1}, numa, ("CUSTOM_FPGA_A10",))
    agent = maker.add(f"{name}-agent", {}, root)
    for nic in range(2):
        for port in range(4):
            maker.add(
                f"{name}-nic{nic}-pf{port}",
                {
                    "SRIOV_NET_VF": 8,
                    "NET_BW_EGR_KILOBIT_PER_SEC": 25_000_000,
                    "NET_BW_IGR_KILOBIT_PER_SEC": 25_000_000,
                },
                agent,
                (f"CUSTOM_PHYSNET_{nic + 1}",),
            )


def hostile(hosts: int, seed: int = 8) -> list[World]:
    """The same hosts with questions that nearly match, or that ask for very much at once."""
    maker = WorldMaker(seed)
    dice = random.Random(seed)
    features = sorted(trait for trait in os_traits.get_traits() if trait.startswith("HW_"))[:200]
    groups = [maker.uuid() for _ in range(2_000)]
    for number in range(hosts):
        root = maker.add(
            f"hostile-{number}",
            {"DISK_GB": 2_000},
            traits=tuple(dice.sample(features, 20)),
            aggregates=tuple(dice.sample(groups, 5)),
        )
        for node in range(2):
            numa = maker.add(f"hostile-{number}-{node}", {"VCPU": 32, "MEMORY_MB": 131_072}, root)
            for device in range(3):
                maker.add(
                    f"hostile-{number}-{node}-{device}",
                    {"FPGA": 1, "VGPU": 4},
                    numa,
                    tuple(dice.sample(features, 3)),
                )
    return [
        World(f"hostile {hosts}: {name}", maker.providers, query, (1000,))
        for name, query in _hostile_queries(features, groups)
    ]


def _hostile_queries(features: list[str], groups: list[str]) -> list[tuple[str, str]]:
    def suffixed(amounts: list[str], start: int = 1) -> str:
        return "&".join(f"resources{n}={amount}" for n, amount in enumerate(amounts, start))

    def devices(count: int, amount: int) -> str:
        return "&".join(f"resources_A{one}=VGPU:{amount}" for one in range(count))

    def subtree(count: int) -> str:
        return ",".join(f"_A{one}" for one in range(count))

    free = "&group_policy=none"
    return [
        ("one disk", "resources=DISK_GB:10"),
        (
            "CPU and device of one NUMA node",
            (
                "resources_C=VCPU:1,MEMORY_MB:512&resources_A=FPGA:1"
                "&group_policy=none&same_subtree=_C,_A"
            ),
        ),
        ("7 groups for 6 devices", suffixed(["FPGA:1"] * 7) + free),
        ("isolate, 9 groups for 6", suffixed(["VGPU:1"] * 9) + "&group_policy=isolate"),
        ("isolate, 5 groups for 6", suffixed(["VGPU:1"] * 5) + "&group_policy=isolate"),
        ("amounts that do not pack", suffixed(["VGPU:3", "VGPU:2"] * 4 + ["VGPU:3"]) + free),
        ("same_subtree over 6", f"{devices(6, 1)}{free}&same_subtree={subtree(6)}"),
        (
            "same_subtree over 6 and a node",
            f"resources_C=VCPU:1&{devices(5, 4)}{free}&same_subtree=_C,{subtree(5)}",
        ),
        ("any of 100 traits", "resources=DISK_GB:10&required=in:" + ",".join(features[:100])),
        (
            "10 lists of 100 traits",
            "resources=DISK_GB:10&"
            + "&".join(
                "required=in:" + ",".join(features[one * 10 : one * 10 + 100]) for one in range(10)
            ),
        ),
        (
            "100 forbidden traits",
            "resources=DISK_GB:10&required="
            + ",".join(f"!{feature}" for feature in features[:100]),
        ),
        ("member of 1,000", "resources=DISK_GB:10&member_of=in:" + ",".join(groups[:1000])),
        ("not member of 1,000", "resources=DISK_GB:10&member_of=!in:" + ",".join(groups[:1000])),
    ]
