# SPDX-License-Identifier: Apache-2.0
"""Worlds that the pages are looked at with: twelve trees, and five thousand."""

from tests.clouds import SHARING, World, WorldMaker

QUESTION = (
    "resources_CPU=VCPU:4,MEMORY_MB:4096&resources_NET=SRIOV_NET_VF:1&same_subtree=_CPU,_NET"
)
"""A query with candidates on the ten hosts of the small world."""

HOPELESS = "resources_GPU=VGPU:1&resources_NET=SRIOV_NET_VF:1&required_NUMA=HW_NUMA_ROOT&same_subtree=_NUMA,_GPU,_NET"
"""A query without candidates: no NUMA node has both a GPU and a network port."""

TRAITS = ("HW_NUMA_ROOT", "CUSTOM_GOLD")


def small(hosts=10):
    """Ten hosts of seven providers in two racks, a flat host, and a pool of the first rack.

    The last of ten has a consumer above its capacity.
    """
    maker = WorldMaker(16)
    racks = (maker.uuid(), maker.uuid())
    for number in range(hosts):
        _host(maker, f"host-{number}", racks[number % 2], used=4 * number)
    maker.add("edge", {"VCPU": 8, "MEMORY_MB": 8_192}, aggregates=racks[:1], used={"VCPU": 8})
    maker.add("pool", {"DISK_GB": 10_000}, None, (SHARING,), racks[:1], used={"DISK_GB": 500})
    return World("hosts", maker.providers, QUESTION, (None,))


def _host(maker, name, rack, used):
    root = maker.add(name, {"DISK_GB": 2_000}, aggregates=(rack,))
    for node in range(2):
        numa = maker.add(
            f"{name}_numa{node}",
            {"VCPU": 32, "MEMORY_MB": 131_072},
            root,
            TRAITS,
            used={"VCPU": used} if used and not node else None,
        )
        device = {"SRIOV_NET_VF": 8} if node == 0 else {"VGPU": 4}
        maker.add(f"{name}_numa{node}_device", device, numa)
        maker.add(f"{name}_numa{node}_other", {"FPGA": 1}, numa)
