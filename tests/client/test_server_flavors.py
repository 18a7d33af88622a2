# SPDX-License-Identifier: Apache-2.0
"""Nova's flavors become what Nova would ask, by its documentation of extra specs."""

import pytest

from tests.compute import flavor_of
from treeclaim.client.errors import FlavorError
from treeclaim.client.requests.server_flavors import server_flavor

ENABLED = "root_required=!COMPUTE_STATUS_DISABLED"


def query_of(vcpus=4, ram=1024, disk=10, specs=None, **more):
    """The query of a flavor."""
    return str(server_flavor(flavor_of("some", vcpus, ram, disk, **more), specs or {}).query)


def test_the_disk_is_all_that_is_on_the_host():
    told = {"swap": 1025, "OS-FLV-EXT-DATA:ephemeral": 5}
    assert query_of(**told) == f"resources=VCPU:4,MEMORY_MB:1024,DISK_GB:17&{ENABLED}"


@pytest.mark.parametrize(
    ("specs", "asked"),
    [
        ({"hw:cpu_policy": "dedicated"}, "resources=MEMORY_MB:1024,DISK_GB:10,PCPU:4"),
        (
            {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"},
            "resources=MEMORY_MB:1024,DISK_GB:10,PCPU:5",
        ),
        (
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-2,^1"},
            "resources=VCPU:2,MEMORY_MB:1024,DISK_GB:10,PCPU:2",
        ),
        (
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"},
            "resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10,PCPU:3",
        ),
        (
            {"hw:cpu_thread_policy": "isolate"},
            "resources=VCPU:4,MEMORY_MB:1024,DISK_GB:10&required=!HW_CPU_HYPERTHREADING",
        ),
        (
            {"hw:mem_encryption": "True"},
            "resources=VCPU:4,MEMORY_MB:1024,DISK_GB:10,MEM_ENCRYPTION_CONTEXT:1",
        ),
        (
            {"hw:tpm_version": "2.0"},
            "resources=VCPU:4,MEMORY_MB:1024,DISK_GB:10&required=COMPUTE_SECURITY_TPM_2_0",
        ),
        (
            {"resources:VCPU": "0", "resources:PCPU": "2", "resources1:VGPU": "1"},
            "resources=MEMORY_MB:1024,DISK_GB:10,PCPU:2&resources1=VGPU:1",
        ),
    ],
)
def test_extra_specs_in_words_of_nova(specs, asked):
    assert query_of(specs=specs) == f"{asked}&{ENABLED}"


def test_what_the_flavor_says_of_the_root_itself_is_left():
    assert query_of(specs={"root_required": "COMPUTE_NODE"}).endswith("root_required=COMPUTE_NODE")


def test_what_nova_judges_itself_is_named():
    specs = {"hw:numa_nodes": "1", "pci_passthrough:alias": "a:1", "quota:cpu_shares": "1"}
    found = server_flavor(flavor_of("some", 1, 1, 0), specs)
    assert found.unasked == ("hw:numa_nodes", "pci_passthrough:alias")


@pytest.mark.parametrize("mask", ["a-b", "0-9", "7"])
def test_a_mask_of_processors_that_are_none_is_refused(mask):
    with pytest.raises(FlavorError, match="cpu_dedicated_mask"):
        query_of(specs={"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": mask})
