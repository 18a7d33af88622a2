# SPDX-License-Identifier: Apache-2.0
"""Drives Nova's own client as its compute and scheduler services do; runs where Nova is installed.

Called with the name of a nova.conf. Fails if a public method of the client was not used.
"""

import copy
import sys
import uuid
from typing import ClassVar

from nova import config, context, exception, objects
from nova.scheduler import utils
from nova.scheduler.client import report
from steps import do_all, refused, require_all_used

PROJECT, USER = str(uuid.uuid4()), str(uuid.uuid4())
GPU = "CUSTOM_REPORTED_GPU"
TRAITS = ["CUSTOM_REPORTED", "HW_CPU_X86_AVX2"]
EXTENDED = {"OpenStack-API-Version": "placement 1.39, treeclaim 1.0"}


class Watched(report.SchedulerReportClient):
    """Nova's client, which remembers what of it was used."""

    used: ClassVar[set[str]] = set()

    def __getattribute__(self, name):
        Watched.used.add(name)
        return super().__getattribute__(name)


def inventory(total, **members):
    """An inventory as a driver reports it."""
    usual = {"reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
    return {"total": total, "allocation_ratio": 1.0} | usual | members


class Deployment:
    """Two hosts and an instance."""

    def __init__(self):
        self.client = Watched()
        self.context = context.get_admin_context()
        self.hosts = [str(uuid.uuid4()) for _ in range(2)]
        self.names = [f"host-{host[:8]}" for host in self.hosts]
        self.instance, self.migration = str(uuid.uuid4()), str(uuid.uuid4())

    def call_extension(self, method, path, body=None, status=200):
        """Send a request with the extension; return the document of the response."""
        answer = self.client._client.request(path, method, json=body, headers=EXTENDED)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.text else None

    def report_trees(self):
        """Run the calls of a compute host at its start and periodically."""
        for host, name in zip(self.hosts, self.names, strict=True):
            self.report_tree(host, name)
        client = self.client
        client.clear_provider_cache()
        again = client.get_provider_tree_and_ensure_root(self.context, self.hosts[0])
        assert again.data(self.hosts[0]).inventory["VCPU"]["total"] == 16
        assert again.has_traits(self.names[0], TRAITS)
        client.update_from_provider_tree(self.context, again)

    def report_tree(self, host, name):
        """Report a host with one NUMA node."""
        tree = self.client.get_provider_tree_and_ensure_root(self.context, host, name=name)
        tree.update_inventory(
            name, {"VCPU": inventory(16, allocation_ratio=2.0), "MEMORY_MB": inventory(4096)}
        )
        tree.update_traits(name, TRAITS)
        tree.new_child(f"{name}_gpu", name)
        tree.update_inventory(f"{name}_gpu", {GPU: inventory(4)})
        tree.update_traits(f"{name}_gpu", ["CUSTOM_REPORTED_FAST"])
        self.client.update_from_provider_tree(self.context, tree)

    def look(self):
        """Read as the API and the resource tracker do."""
        client, host, name = self.client, self.hosts[0], self.names[0]
        assert client.get_provider_by_name(self.context, name)["uuid"] == host
        assert client.get_resource_provider_name(self.context, host) == name
        assert "CUSTOM_REPORTED" in client.get_provider_traits(self.context, host).traits
        in_tree = client.get_providers_in_tree(self.context, host)
        assert {provider["name"] for provider in in_tree} == {name, f"{name}_gpu"}
        part = client.get_provider_subtree_and_ensure_root(self.context, host)
        assert part.data(f"{name}_gpu").inventory[GPU]["total"] == 4
        with refused("an unknown host", exception.ResourceProviderNotFound):
            client.get_provider_by_name(self.context, "nowhere")

    def set_single_things(self):
        """Writes past the provider tree."""
        client, host, name = self.client, self.hosts[1], self.names[1]
        aggregate = str(uuid.uuid4())
        client.aggregate_add_host(self.context, aggregate, host_name=name)
        in_aggregate = objects.RequestGroup(
            requester_id="port", resources={"VCPU": 1}, aggregates=[[aggregate]]
        )
        candidates = self.candidates(groups=[in_aggregate])
        assert {root(candidate) for candidate in candidates} == {host}
        client.aggregate_remove_host(self.context, aggregate, name)
        client.clear_provider_cache()
        client.get_provider_tree_and_ensure_root(self.context, host)
        client.set_traits_for_provider(self.context, host, [*TRAITS, "CUSTOM_OTHER"])
        client.set_aggregates_for_provider(self.context, host, [aggregate])
        client.set_inventory_for_provider(
            self.context, host, {"VCPU": inventory(8), "MEMORY_MB": inventory(2048)}
        )
        client.invalidate_resource_provider(host)

    def candidates(self, extra_specs=None, memory=512, groups=()):
        """Search as the scheduler does: for a flavor, and for requests of ports or devices."""
        flavor = objects.Flavor(
            vcpus=2,
            memory_mb=memory,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            extra_specs=extra_specs or {},
        )
        specification = objects.RequestSpec(
            flavor=flavor,
            requested_resources=list(groups),
            request_level_params=objects.RequestLevelParams(root_required={"HW_CPU_X86_AVX2"}),
        )
        request = utils.ResourceRequest.from_request_spec(specification)
        answer = self.client.get_allocation_candidates(self.context, request)
        requests, summaries, self.version = answer
        assert {
            allocation
            for allocation_request in requests
            for allocation in allocation_request["allocations"]
        } <= set(summaries)
        return requests

    def candidate_on(self, number, extra_specs=None, **options):
        """Return the first candidate that takes from a host."""
        return next(
            candidate
            for candidate in self.candidates(extra_specs, **options)
            if self.hosts[number] in candidate["allocations"]
        )

    def claim(self):
        """Claim for an instance, with a GPU of the tree."""
        resources = {
            f"resources_GPU:{GPU}": "1",
            "trait_GPU:CUSTOM_REPORTED_FAST": "required",
            "trait:CUSTOM_REPORTED": "required",
            "group_policy": "none",
        }
        assert self.claim_for(self.instance, self.candidate_on(0, resources, memory=0))
        held = self.client.get_allocs_for_consumer(self.context, self.instance)
        assert held["allocations"][self.hosts[0]]["resources"] == {"VCPU": 2}
        assert (held["project_id"], held["user_id"]) == (PROJECT, USER)
        limits = self.client.get_usages_counts_for_limits(self.context, PROJECT)
        assert limits == {"VCPU": 2, GPU: 1}
        quota = self.client.get_usages_counts_for_quota(self.context, PROJECT, USER)
        assert quota["user"] == {"cores": 2, "ram": 0}

    def claim_for(self, consumer, chosen):
        return self.client.claim_resources(
            self.context, consumer, chosen, PROJECT, USER, self.version
        )

    def claim_too_much(self):
        """A claim that does not fit is refused, without an exception."""
        chosen = copy.deepcopy(self.candidates()[0])
        next(iter(chosen["allocations"].values()))["resources"]["VCPU"] = 1000
        assert self.claim_for(str(uuid.uuid4()), chosen) is False

    def change_claim(self):
        """Attach and detach an interface with bandwidth."""
        client, allocations = self.client, {self.hosts[0]: {"resources": {"MEMORY_MB": 256}}}
        client.add_resources_to_instance_allocation(self.context, self.instance, allocations)
        assert self.held()[self.hosts[0]]["resources"] == {"VCPU": 2, "MEMORY_MB": 256}
        client.remove_resources_from_instance_allocation(self.context, self.instance, allocations)
        assert self.held()[self.hosts[0]]["resources"] == {"VCPU": 2}

    def held(self, consumer=None):
        return self.client.get_allocations_for_consumer(self.context, consumer or self.instance)

    def migrate(self):
        """Move the claim to the migration, claim at the target, and go back."""
        client, before = self.client, self.held()
        assert client.move_allocations(self.context, self.instance, self.migration)
        assert self.held() == {}
        assert set(self.held(self.migration)) == set(before)
        assert self.claim_for(self.instance, self.candidate_on(1))
        assert set(self.held()) == {self.hosts[1]}
        assert client.delete_allocation_for_instance(self.context, self.instance)
        assert client.move_allocations(self.context, self.migration, self.instance)
        assert set(self.held()) == set(before)

    def evacuate(self):
        """Claim on both hosts, then release the first."""
        assert self.claim_for(self.instance, self.candidate_on(1))
        assert self.hosts[0] in self.held()
        assert self.hosts[1] in self.held()
        self.client.remove_provider_tree_from_instance_allocation(
            self.context, self.instance, self.hosts[1]
        )
        assert self.hosts[1] not in self.held()

    def put_stale(self):
        """Nova recognises a concurrent change of the consumer."""
        current = self.client.get_allocs_for_consumer(self.context, self.instance)
        assert self.client.put_allocations(self.context, self.instance, current)
        with refused("a stale consumer generation", exception.AllocationUpdateFailed):
            self.client.put_allocations(self.context, self.instance, current)

    def report_stale(self):
        """Nova recognises a concurrent change of the provider."""
        client, host, name = self.client, self.hosts[0], self.names[0]
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(self.context, host)
        client.put(
            f"/resource_providers/{host}/traits",
            {
                "resource_provider_generation": tree.data(host).generation,
                "traits": ["CUSTOM_REPORTED"],
            },
            version="1.6",
        )
        tree.update_traits(name, ["HW_CPU_X86_SSE"])
        with refused("a stale provider generation", exception.ResourceProviderUpdateConflict):
            client.update_from_provider_tree(self.context, tree)

    def read_tree(self):
        """Return the tree of the first host, and all allocations in it, as a driver changes them."""
        self.client.clear_provider_cache()
        tree = self.client.get_provider_tree_and_ensure_root(self.context, self.hosts[0])
        return tree, self.client.get_allocations_for_provider_tree(self.context, self.names[0])

    def move_vcpu_to_child(self):
        """Return the tree in which a new child has the VCPU of the first host, allocations, and the child."""
        tree, allocations = self.read_tree()
        name = self.names[0]
        tree.new_child(f"{name}_numa0", name)
        child = tree.data(f"{name}_numa0").uuid
        tree.update_inventory(child, {"VCPU": inventory(16)})
        tree.update_inventory(name, {"MEMORY_MB": inventory(4096)})
        for allocation in allocations.values():
            held = allocation["allocations"]
            held[child] = held.pop(self.hosts[0])
        return tree, allocations, child

    def reshape(self):
        """Move the VCPU of a host, and the claims on it, to a new child."""
        client, host = self.client, self.hosts[0]
        tree, allocations, child = self.move_vcpu_to_child()
        assert set(allocations) == {self.instance}
        client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert self.held()[child]["resources"] == {"VCPU": 2}
        assert "VCPU" not in client._get_inventory(self.context, host)["inventories"]
        on_child = client.get_allocations_for_resource_provider(self.context, child)
        assert set(on_child.allocations) == {self.instance}

    def take_inventory_in_use(self):
        """Nova understands that an inventory is in use."""
        client, name = self.client, self.names[0]
        tree = client.get_provider_tree_and_ensure_root(self.context, self.hosts[0])
        tree.update_inventory(f"{name}_numa0", {})
        errors = (exception.ResourceProviderSyncFailed, exception.InventoryInUse)
        with refused("a deletion of an inventory in use", *errors):
            client.update_from_provider_tree(self.context, tree)

    def delete(self):
        """Delete the instance, then the hosts."""
        assert self.client.delete_allocation_for_instance(self.context, self.instance, force=True)
        assert self.held() == {}
        for host, name in zip(self.hosts, self.names, strict=True):
            node = objects.ComputeNode(uuid=host, hypervisor_hostname=name, host=name)
            self.client.delete_resource_provider(self.context, node)
            assert self.client.get(f"/resource_providers/{host}").status_code == 404


def root(candidate):
    (only,) = candidate["allocations"]
    return only


STEPS = (
    Deployment.report_trees,
    Deployment.look,
    Deployment.set_single_things,
    Deployment.claim,
    Deployment.claim_too_much,
    Deployment.change_claim,
    Deployment.migrate,
    Deployment.evacuate,
    Deployment.put_stale,
    Deployment.report_stale,
    Deployment.reshape,
    Deployment.take_inventory_in_use,
    Deployment.delete,
)


def run_steps(kind, steps):
    """Do the steps with the nova.conf that the command line names."""
    config.parse_args(["nova", "--config-file", sys.argv[1]])
    objects.register_all()
    do_all(steps, kind())


if __name__ == "__main__":
    run_steps(Deployment, STEPS)
    require_all_used(report.SchedulerReportClient, Watched.used)
