# SPDX-License-Identifier: Apache-2.0
"""The small worlds: what each shows is in its name and beside its questions."""

from tests.worlds.small import Question, SmallWorld

WORLDS = (
    SmallWorld(
        "flat hosts",
        """
h1: {VCPU: 8, MEMORY_MB: 1024}
h2: {VCPU: 2, MEMORY_MB: 1024}
""",
        (
            Question("resources=VCPU:2", ("h1(VCPU:2)", "h2(VCPU:2)"), "each host by itself"),
            Question(
                "resources=VCPU:4,MEMORY_MB:512",
                ("h1(VCPU:4, MEMORY_MB:512)",),
                "all of a group from one host",
            ),
            Question("resources=VCPU:9", (), "two hosts are never put together"),
            Question("resources=VCPU:1&in_tree=<h2>", ("h2(VCPU:1)",), "one tree is wanted"),
        ),
    ),
    SmallWorld(
        "a host in use with picky amounts",
        """
h1: {VCPU: {total 8, used 3}, MEMORY_MB: {total 1024, reserved 512}}
h2: {VCPU: {total 4, allocation_ratio 2.0, used 3}, MEMORY_MB: {total 1024, step_size 256}}
h3: {VCPU: {total 12, min_unit 2, max_unit 6, step_size 2}, MEMORY_MB: 64}
""",
        (
            Question("resources=VCPU:5", ("h1(VCPU:5)", "h2(VCPU:5)"), "h3 lends even amounts"),
            Question("resources=VCPU:6", ("h3(VCPU:6)",), "the others have five left"),
            Question("resources=VCPU:8", (), "more than h3 lends at once"),
            Question(
                "resources=MEMORY_MB:512",
                ("h1(MEMORY_MB:512)", "h2(MEMORY_MB:512)"),
                "what is reserved is not lent",
            ),
            Question(
                "resources_A=VCPU:4&resources_B=VCPU:4&group_policy=none",
                (),
                "groups stay in one tree, and the sum of both fits nowhere",
            ),
        ),
    ),
    SmallWorld(
        "one host with two NUMA nodes",
        """
host: {MEMORY_MB: 1024}
  n0: {VCPU: 4} traits[HW_NUMA_ROOT]
  n1: {VCPU: 4} traits[HW_NUMA_ROOT]
""",
        (
            Question(
                "resources=VCPU:3,MEMORY_MB:64",
                ("n0(VCPU:3) + host(MEMORY_MB:64)", "n1(VCPU:3) + host(MEMORY_MB:64)"),
                "classes of one group from several providers of a tree",
            ),
            Question(
                "resources_A=VCPU:2&resources_B=VCPU:3&group_policy=none",
                (
                    "n0(VCPU:2) + n1(VCPU:3) mappings{_A: n0; _B: n1}",
                    "n1(VCPU:2) + n0(VCPU:3) mappings{_A: n1; _B: n0}",
                ),
                "groups may meet, but five fit on neither node",
            ),
            Question(
                "resources_A=VCPU:2&resources_B=VCPU:2&group_policy=none",
                (
                    "n0(VCPU:2) + n1(VCPU:2) mappings{_A: n0; _B: n1}",
                    "n1(VCPU:2) + n0(VCPU:2) mappings{_A: n1; _B: n0}",
                    "n0(VCPU:4) mappings{_A: n0; _B: n0}",
                    "n1(VCPU:4) mappings{_A: n1; _B: n1}",
                ),
                "four fit, so both groups may be on one node",
            ),
            Question(
                "resources_A=VCPU:2&resources_B=VCPU:2&group_policy=isolate",
                (
                    "n0(VCPU:2) + n1(VCPU:2) mappings{_A: n0; _B: n1}",
                    "n1(VCPU:2) + n0(VCPU:2) mappings{_A: n1; _B: n0}",
                ),
                "isolated groups never share a node",
            ),
            Question("resources=VCPU:5", (), "an amount is not divided unasked"),
            Question(
                "resources=VCPU:6&can_split=VCPU",
                ("n0(VCPU:4) + n1(VCPU:2)",),
                "a division fills the first node",
            ),
            Question(
                "resources=VCPU:6&can_split=VCPU&split_policy=even",
                ("n0(VCPU:3) + n1(VCPU:3)",),
                "or is as even as it can be",
            ),
        ),
    ),
    SmallWorld(
        "two NUMA hosts with a shared disk",
        """
h1: aggs[A]
  h1n0: {VCPU: 4}
  h1n1: {VCPU: 4}
h2: aggs[A]
  h2n0: {VCPU: 2}
  h2n1: {VCPU: 4}
disk: {DISK_GB: 100} traits[MISC_SHARES_VIA_AGGREGATE] aggs[A]
""",
        (
            Question(
                "resources=VCPU:3,DISK_GB:10",
                (
                    "h1n0(VCPU:3) + disk(DISK_GB:10)",
                    "h1n1(VCPU:3) + disk(DISK_GB:10)",
                    "h2n1(VCPU:3) + disk(DISK_GB:10)",
                ),
                "the disk lends to every tree of its aggregate",
            ),
            Question(
                "resources=DISK_GB:10",
                ("disk(DISK_GB:10)",),
                "reached from three roots, and still one candidate",
            ),
            Question(
                "resources=VCPU:3,DISK_GB:10&in_tree=<h1>",
                (),
                "the disk is not in the tree that is wanted",
            ),
            Question(
                "resources_A=VCPU:3&in_tree_A=<h1>&resources_B=DISK_GB:10&group_policy=none",
                (
                    "h1n0(VCPU:3) + disk(DISK_GB:10) mappings{_A: h1n0; _B: disk}",
                    "h1n1(VCPU:3) + disk(DISK_GB:10) mappings{_A: h1n1; _B: disk}",
                ),
                "a group of its own may be lent",
            ),
        ),
    ),
    SmallWorld(
        "a sharing pool reached by two trees of different aggregates",
        """
left: {VCPU: 2} aggs[A]
right: {VCPU: 2} aggs[B]
pool: {DISK_GB: 10} traits[MISC_SHARES_VIA_AGGREGATE] aggs[A, B]
lonely: {DISK_GB: 10} traits[MISC_SHARES_VIA_AGGREGATE]
""",
        (
            Question(
                "resources=VCPU:1,DISK_GB:5",
                ("left(VCPU:1) + pool(DISK_GB:5)", "right(VCPU:1) + pool(DISK_GB:5)"),
                "one pool in two aggregates; who is in none lends to nobody",
            ),
            Question(
                "resources=VCPU:1,DISK_GB:5&member_of={A}",
                ("left(VCPU:1) + pool(DISK_GB:5)",),
                "the pool is in A, and so must the host be",
            ),
            Question(
                "resources=VCPU:1,DISK_GB:5&member_of=!{B}",
                (),
                "the pool is in B, and may not be",
            ),
            Question(
                "resources=DISK_GB:10",
                ("pool(DISK_GB:10)", "lonely(DISK_GB:10)"),
                "each serves its own tree",
            ),
        ),
    ),
    SmallWorld(
        "a pool below a root of storage",
        """
host: {VCPU: 2} aggs[A]
storage: {MEMORY_MB: 64}
  fast: {DISK_GB: 10} traits[MISC_SHARES_VIA_AGGREGATE, STORAGE_DISK_SSD] aggs[A]
  slow: {DISK_GB: 10}
""",
        (
            Question(
                "resources=VCPU:1,DISK_GB:5",
                ("host(VCPU:1) + fast(DISK_GB:5)",),
                "a provider below a root lends; its sibling does not",
            ),
            Question(
                "resources=MEMORY_MB:1,DISK_GB:5&required=!STORAGE_DISK_SSD",
                ("storage(MEMORY_MB:1) + slow(DISK_GB:5)",),
                "inside its own tree the sibling serves too",
            ),
        ),
    ),
    SmallWorld(
        "a tree with GPU and NIC on different nodes",
        """
host: {MEMORY_MB: 1024}
  n0: {VCPU: 4}
    gpu: {VGPU: 1}
  n1: {VCPU: 4}
    nic: {SRIOV_NET_VF: 2}
""",
        (
            Question(
                "resources_A=VCPU:1&resources_B=VGPU:1&group_policy=none",
                (
                    "n0(VCPU:1) + gpu(VGPU:1) mappings{_A: n0; _B: gpu}",
                    "n1(VCPU:1) + gpu(VGPU:1) mappings{_A: n1; _B: gpu}",
                ),
                "anywhere in the tree",
            ),
            Question(
                "resources_A=VCPU:1&resources_B=VGPU:1&group_policy=none&same_subtree=_A,_B",
                ("n0(VCPU:1) + gpu(VGPU:1) mappings{_A: n0; _B: gpu}",),
                "the processor above the device",
            ),
            Question(
                "resources_A=VGPU:1&resources_B=SRIOV_NET_VF:1&group_policy=none"
                "&same_subtree=_A,_B",
                (),
                "neither device is above the other",
            ),
            Question(
                "resources_A=VCPU:1&resources_B=VGPU:1&resources_C=SRIOV_NET_VF:1"
                "&group_policy=none&same_subtree=_A,_C&same_subtree=_A,!_B",
                (
                    (
                        "n1(VCPU:1) + gpu(VGPU:1) + nic(SRIOV_NET_VF:1) "
                        "mappings{_A: n1; _B: gpu; _C: nic}"
                    ),
                ),
                "near the one device, away from the other",
            ),
            Question("resources=VCPU:1&in_subtree=<n1>", ("n1(VCPU:1)",), "one part of the tree"),
        ),
    ),
    SmallWorld(
        "devices with and without a trait",
        """
host: traits[HW_NUMA_ROOT]
  fast: {CUSTOM_DEVICE: 1} traits[CUSTOM_FAST]
  plain: {CUSTOM_DEVICE: 1}
other:
  slow: {CUSTOM_DEVICE: 1} traits[CUSTOM_SLOW]
""",
        (
            Question(
                "resources=CUSTOM_DEVICE:1&required=CUSTOM_FAST",
                ("fast(CUSTOM_DEVICE:1)",),
                "a trait that is wanted",
            ),
            Question(
                "resources=CUSTOM_DEVICE:1&required=!CUSTOM_FAST",
                ("plain(CUSTOM_DEVICE:1)", "slow(CUSTOM_DEVICE:1)"),
                "a trait that is not",
            ),
            Question(
                "resources=CUSTOM_DEVICE:1&required=in:CUSTOM_FAST,CUSTOM_SLOW",
                ("fast(CUSTOM_DEVICE:1)", "slow(CUSTOM_DEVICE:1)"),
                "one of two traits",
            ),
            Question(
                "resources=CUSTOM_DEVICE:1&required=HW_NUMA_ROOT",
                (),
                "the root has the trait, and gives nothing",
            ),
            Question(
                "resources=CUSTOM_DEVICE:1&root_required=HW_NUMA_ROOT",
                ("fast(CUSTOM_DEVICE:1)", "plain(CUSTOM_DEVICE:1)"),
                "the trait of the root is asked of the root",
            ),
            Question(
                "resources_A=CUSTOM_DEVICE:1&required_A=CUSTOM_FAST&resources_B=CUSTOM_DEVICE:1"
                "&group_policy=none",
                ("fast(CUSTOM_DEVICE:1) + plain(CUSTOM_DEVICE:1) mappings{_A: fast; _B: plain}",),
                "a group without a condition takes what is left",
            ),
        ),
    ),
    SmallWorld(
        "a wide tree whose devices are all alike",
        """
host: {VCPU: 8}
  d0: {CUSTOM_DEVICE: 1}
  d1: {CUSTOM_DEVICE: 1}
  d2: {CUSTOM_DEVICE: 1}
""",
        (
            Question(
                "resources_A=CUSTOM_DEVICE:1&resources_B=CUSTOM_DEVICE:1&group_policy=none",
                (
                    "d0(CUSTOM_DEVICE:1) + d1(CUSTOM_DEVICE:1) mappings{_A: d0; _B: d1}",
                    "d0(CUSTOM_DEVICE:1) + d2(CUSTOM_DEVICE:1) mappings{_A: d0; _B: d2}",
                    "d1(CUSTOM_DEVICE:1) + d0(CUSTOM_DEVICE:1) mappings{_A: d1; _B: d0}",
                    "d1(CUSTOM_DEVICE:1) + d2(CUSTOM_DEVICE:1) mappings{_A: d1; _B: d2}",
                    "d2(CUSTOM_DEVICE:1) + d0(CUSTOM_DEVICE:1) mappings{_A: d2; _B: d0}",
                    "d2(CUSTOM_DEVICE:1) + d1(CUSTOM_DEVICE:1) mappings{_A: d2; _B: d1}",
                ),
                "every assignment of groups to devices is a candidate",
            ),
            Question(
                "resources=CUSTOM_DEVICE:3&can_split=CUSTOM_DEVICE",
                ("d0(CUSTOM_DEVICE:1) + d1(CUSTOM_DEVICE:1) + d2(CUSTOM_DEVICE:1)",),
                "three from three",
            ),
            Question(
                "resources=VCPU:1,CUSTOM_DEVICE:2",
                (),
                "no device has two",
            ),
        ),
    ),
)
"""All of them. A new way of the search gets a world here that walks it."""

BY_NAME = {small.name: small for small in WORLDS}
"""Worlds by name."""

QUESTIONS = [(small, question) for small in WORLDS for question in small.questions]
"""Each question with its world."""

IDS = [f"{small.name}: {question.why}" for small, question in QUESTIONS]
"""Names of tests, one for each question."""
