# SPDX-License-Identifier: Apache-2.0
"""Uses every method of openstacksdk's placement proxy; runs where openstacksdk is installed.

The login is in the environment. Fails if a method of the proxy was not used.
"""

import uuid

import openstack
from openstack import exceptions
from openstack.placement.v1 import _proxy
from steps import do_all, refused, require_all_used

NOT_OF_PLACEMENT = {"wait_for_delete", "wait_for_status"}
"""Waiting for a status, which nothing here has."""

HOST, CHILD, AGGREGATE = (str(uuid.uuid4()) for _ in range(3))
CONSUMERS = [str(uuid.uuid4()) for _ in range(2)]
PROJECT, USER = str(uuid.uuid4()), str(uuid.uuid4())


class Watched:
    """The proxy, which remembers what of it was used."""

    def __init__(self, proxy):
        self.used = set()
        self._proxy = proxy

    def __getattr__(self, name):
        self.used.add(name)
        return getattr(self._proxy, name)


def classes_and_traits(placement):
    """Custom names come and go."""
    placement.create_resource_class(name="CUSTOM_SDK")
    placement.update_resource_class("CUSTOM_SDK", name="CUSTOM_SDK_RENAMED")
    assert placement.get_resource_class("CUSTOM_SDK_RENAMED").name == "CUSTOM_SDK_RENAMED"
    names = {resource_class.name for resource_class in placement.resource_classes()}
    assert {"VCPU", "CUSTOM_SDK_RENAMED"} <= names
    placement.delete_resource_class("CUSTOM_SDK_RENAMED", ignore_missing=False)
    placement.create_trait("CUSTOM_SDK_TRAIT")
    assert placement.get_trait("CUSTOM_SDK_TRAIT").id == "CUSTOM_SDK_TRAIT"
    assert "CUSTOM_SDK_TRAIT" in {trait.name for trait in placement.traits()}


def providers(placement):
    placement.create_resource_provider(name="sdk host", uuid=HOST)
    placement.create_resource_provider(name="sdk child", uuid=CHILD, parent_provider_uuid=HOST)
    placement.update_resource_provider(CHILD, name="sdk disk")
    assert placement.get_resource_provider(CHILD).parent_provider_id == HOST
    assert placement.find_resource_provider("sdk disk", ignore_missing=False).id == CHILD
    in_tree = {provider.id for provider in placement.resource_providers(in_tree=HOST)}
    assert in_tree == {HOST, CHILD}


def inventories(placement):
    """Made, changed, replaced and taken away."""
    placement.create_resource_provider_inventory(HOST, "VCPU", total=8)
    placement.create_resource_provider_inventory(HOST, "MEMORY_MB", total=1024)
    shown = placement.get_resource_provider_inventory("VCPU", HOST)
    assert shown.total == 8
    changed = placement.update_resource_provider_inventory(
        shown, HOST, resource_provider_generation=shown.resource_provider_generation, total=16
    )
    assert changed.total == 16
    placement.delete_resource_provider_inventory("MEMORY_MB", HOST, ignore_missing=False)
    listed = list(placement.resource_provider_inventories(HOST))
    assert [(inventory.resource_class, inventory.total) for inventory in listed] == [("VCPU", 16)]
    generation = placement.get_resource_provider(CHILD).generation
    placement.set_resource_provider_inventories(CHILD, {"DISK_GB": {"total": 100}}, generation)


def traits_and_aggregates(placement):
    """Write and read the traits and aggregates of a provider."""
    before = placement.get_resource_provider_trait(HOST)
    placement.set_resource_provider_trait(before, traits=["CUSTOM_SDK_TRAIT"])
    assert placement.get_resource_provider_trait(HOST).traits == ["CUSTOM_SDK_TRAIT"]
    host = placement.get_resource_provider(HOST)
    placement.set_resource_provider_aggregates(host, AGGREGATE)
    assert placement.get_resource_provider_aggregates(HOST).aggregates == [AGGREGATE]
    assert placement.fetch_resource_provider_aggregates(HOST).aggregates == [AGGREGATE]


def claim(vcpus, generation):
    return {
        "allocations": {HOST: {"resources": {"VCPU": vcpus}}},
        "project_id": PROJECT,
        "user_id": USER,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def claims(placement):
    """Searched, claimed, read and released."""
    result = list(placement.allocation_candidates(resources="VCPU:1,DISK_GB:1", in_tree=HOST))
    assert len(result) == 1, result
    first, second = CONSUMERS
    placement.update_allocation(first, **claim(2, None))
    held = placement.get_allocation(first)
    assert held.allocations[HOST]["resources"] == {"VCPU": 2}
    both = {first: claim(1, held.consumer_generation), second: claim(3, None)}
    placement.create_allocations(both)
    on_host = list(placement.resource_provider_allocations(HOST))
    assert {allocation.id or allocation.consumer_id for allocation in on_host} == set(CONSUMERS)
    assert placement.fetch_resource_provider_usages(HOST).usages == {"VCPU": 4}
    (used,) = placement.usages(PROJECT, user_id=USER, consumer_type="INSTANCE")
    assert (used.consumer_count, used.resources) == (2, {"VCPU": 4})
    with refused("a stale consumer generation", exceptions.ConflictException):
        placement.update_allocation(first, **claim(1, None))
    for consumer in CONSUMERS:
        placement.delete_allocation(consumer, ignore_missing=False)


def deletions(placement):
    """Everything goes."""
    placement.delete_resource_provider_trait(HOST, ignore_missing=False)
    placement.delete_trait("CUSTOM_SDK_TRAIT", ignore_missing=False)
    for provider in (CHILD, HOST):
        placement.delete_resource_provider_inventories(provider)
        placement.delete_resource_provider(provider, ignore_missing=False)
    assert placement.find_resource_provider("sdk host") is None


def main():
    openstack.enable_logging(debug=False)
    placement = Watched(openstack.connect().placement)
    steps = (classes_and_traits, providers, inventories, traits_and_aggregates, claims, deletions)
    do_all(steps, placement)
    require_all_used(_proxy.Proxy, placement.used | NOT_OF_PLACEMENT)


if __name__ == "__main__":
    main()
