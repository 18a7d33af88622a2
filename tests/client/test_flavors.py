# SPDX-License-Identifier: Apache-2.0
"""Flavors become queries (contract page 97, section 4)."""

import pytest

from treeclaim.client import Flavor, FlavorError, query_of


def parameters(**extra_specs):
    flavor = Flavor(vcpus=2, ram=512, disk=10, extra_specs=extra_specs)
    return dict(query_of(flavor).parameters)


def test_sizes_become_the_unsuffixed_group():
    assert parameters() == {"resources": "VCPU:2,MEMORY_MB:512,DISK_GB:10"}


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ({"resources:VCPU": "4"}, {"resources": "VCPU:4,MEMORY_MB:512,DISK_GB:10"}),
        ({"resources:DISK_GB": "0"}, {"resources": "VCPU:2,MEMORY_MB:512"}),
        ({"resources1:VGPU": "1"}, {"resources1": "VGPU:1"}),
        (
            {"resources_GPU:VGPU": "1", "trait_GPU:CUSTOM_A": "required"},
            {"required_GPU": "CUSTOM_A"},
        ),
        (
            {"trait:CUSTOM_A": "required", "trait:CUSTOM_B": "forbidden"},
            {"required": "CUSTOM_A,!CUSTOM_B"},
        ),
        ({"group_policy": "isolate"}, {"group_policy": "isolate"}),
        ({"same_subtree": "_A,_B"}, {"same_subtree": "_A,_B"}),
        ({"root_required": "CUSTOM_A"}, {"root_required": "CUSTOM_A"}),
        ({"member_of_A": "in:x,y", "in_tree1": "z"}, {"member_of_A": "in:x,y", "in_tree1": "z"}),
        (
            {"can_split": "VCPU", "split_policy": "even"},
            {"can_split": "VCPU", "split_policy": "even"},
        ),
        ({"in_subtree_A": "x", "isolate": "_A", "root_member_of": "y"}, {"isolate": "_A"}),
        ({"order_by": "pack", "limit": "3"}, {"order_by": "pack", "limit": "3"}),
        ({"preferred_A": "CUSTOM_A", "root_in_tree": "!x"}, {"preferred_A": "CUSTOM_A"}),
    ],
    ids=str,
)
def test_extra_specs_become_parameters(specs, expected):
    assert expected.items() <= parameters(**specs).items()


@pytest.mark.parametrize(
    "key", ["hw:cpu_policy", "quota:vif", "resources", "trait", "os:secure_boot"]
)
def test_unrelated_extra_specs_are_ignored(key):
    assert parameters(**{key: "required"}) == parameters()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("resources:vcpu", "1"),
        ("resources01:VGPU", "1"),
        ("resourcesGPU:VGPU", "1"),
        ("resources_GPU!:VGPU", "1"),
        ("resources:VGPU", "one"),
        ("resources:VGPU", "-1"),
        ("resources:VGPU", "0"),
        ("resources1:VCPU", "0"),
        ("trait:CUSTOM_A", "maybe"),
        ("trait_A:custom", "required"),
        ("member_of01", "x"),
        ("in_tree_!", "x"),
    ],
)
def test_invalid_extra_spec_keys_are_named(key, value):
    with pytest.raises(FlavorError, match="extra spec") as caught:
        parameters(**{key: value})
    assert repr(key) in str(caught.value)
