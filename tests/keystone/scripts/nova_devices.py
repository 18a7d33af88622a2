# SPDX-License-Identifier: Apache-2.0
"""Drives Nova's client over hosts with consumption, attributes and conditions; runs where Nova is installed.

Called with the name of a nova.conf. Nova is as it is: it knows nothing of them.
"""

import uuid

from nova import exception, objects
from report_client import GPU, PROJECT, TRAITS, Deployment, inventory, run_steps
from steps import refused

SLICE = "CUSTOM_REPORTED_SLICE"
SLICES_OF_CARD, SLICES_OF_GPU = 8, 2
ATTRIBUTES = {"mem_gib": 80, "driver": "570.86.10", "ecc": True}


class Devices(Deployment):
    """Two hosts with GPUs that consume slices of an added card, and a server on the first host."""

    def provider(self, ending, number=0):
        """The uuid of a provider of a host, by the end of its name."""
        path = f"/resource_providers?name={self.names[number]}{ending}"
        (row,) = self.call_extension("GET", path)["resource_providers"]
        return row["uuid"]

    def used_slices(self):
        """Return how many slices of the card of each host are used, as Nova sees it."""
        paths = [f"/resource_providers/{self.provider('_card', n)}/usages" for n in (0, 1)]
        answers = [self.client.get(path, version="1.39").json() for path in paths]
        return [answer["usages"][SLICE] for answer in answers]

    def condition(self, provider, method="PUT", **members):
        """Put a condition of a provider, or delete it."""
        path = f"/treeclaim/providers/{provider}/conditions/FAILING"
        self.call_extension(method, path, members or None, status=204)

    def candidates_by_host(self):
        """Return the candidate on each host that the scheduler gets for the server's flavor."""
        extra_specs = {f"resources_GPU:{GPU}": "1", "group_policy": "none"}
        candidates = self.candidates(extra_specs, memory=0)
        return {
            number: candidate
            for number, host in enumerate(self.hosts)
            for candidate in candidates
            if host in candidate["allocations"]
        }

    def let_gpu_consume(self, gpu, card):
        """Write that each GPU consumes slices of a card."""
        path = f"/resource_providers/{gpu}/inventories"
        document = self.call_extension("GET", path)
        consumed = {"provider": card, "resource_class": SLICE, "amount": SLICES_OF_GPU}
        document["inventories"][GPU]["consumes"] = [consumed]
        self.call_extension("PUT", path, document)

    def describe_devices(self):
        """Move the GPUs of each host below a card with slices that they consume, as an operator would."""
        self.call_extension("PUT", f"/resource_classes/{SLICE}", status=201)
        for number, host in enumerate(self.hosts):
            card, gpu = str(uuid.uuid4()), self.provider("_gpu", number)
            new_card = {
                "uuid": card,
                "name": f"{self.names[number]}_card",
                "parent_provider_uuid": host,
                "inventories": {SLICE: {"total": SLICES_OF_CARD}},
                "attributes": ATTRIBUTES,
            }
            moved_gpu = {"uuid": gpu, "parent_provider_uuid": card, "attributes": ATTRIBUTES}
            body = {"providers": [new_card, moved_gpu]}
            self.call_extension("POST", "/treeclaim/providers", body)
            self.let_gpu_consume(gpu, card)
            self.condition(gpu, effect="no_new", reason="kept")

    def refresh(self):
        """A refresh of inventories, traits and aggregates keeps all that Nova does not know."""
        before = self.extension_data()
        for write in (self.report_tree_anew, self.write_single_provider):
            for number in (0, 1):
                write(number)
            assert self.extension_data() == before

    def report_tree_anew(self, number):
        """A driver reports other inventories and traits, of the host and its GPUs."""
        client, host, name = self.client, self.hosts[number], self.names[number]
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(self.context, host)
        tree.update_inventory(
            name, {"VCPU": inventory(16, reserved=1), "MEMORY_MB": inventory(2048)}
        )
        tree.update_inventory(f"{name}_gpu", {GPU: inventory(6, max_unit=2)})
        for provider_name in (name, f"{name}_gpu", f"{name}_card"):
            tree.update_traits(provider_name, [*TRAITS, "CUSTOM_REPORTED_ANEW"])
            tree.update_aggregates(provider_name, [str(uuid.uuid4())])
        client.update_from_provider_tree(self.context, tree)
        shown = client._get_inventory(self.context, self.provider("_gpu", number))
        assert shown["inventories"][GPU]["total"] == 6

    def write_single_provider(self, number):
        """Inventories and traits of a provider that is written alone."""
        gpu = self.provider("_gpu", number)
        client = self.client
        client.clear_provider_cache()
        client.get_provider_tree_and_ensure_root(self.context, self.hosts[number])
        client.set_inventory_for_provider(self.context, gpu, {GPU: inventory(5)})
        client.set_traits_for_provider(self.context, gpu, ["CUSTOM_REPORTED_FAST"])

    def extension_data(self):
        """Return the attributes, conditions and consumption of all providers, by name."""
        include = "inventories,attributes,conditions"
        data_by_name = {}
        for host in self.hosts:
            path = f"/treeclaim/providers?in_tree={host}&include={include}"
            for provider in self.call_extension("GET", path)["providers"]:
                stock = provider["inventories"].items()
                data_by_name[provider["name"]] = {
                    "attributes": provider["attributes"],
                    "conditions": provider["conditions"],
                    "consumes": {name: fields["consumes"] for name, fields in stock},
                }
        gpu, card = (data_by_name[f"{self.names[0]}{ending}"] for ending in ("_gpu", "_card"))
        assert gpu["attributes"] == card["attributes"] == ATTRIBUTES
        assert gpu["conditions"]["FAILING"]["reason"] == "kept"
        assert gpu["consumes"][GPU][0]["amount"] == SLICES_OF_GPU
        return data_by_name

    def claim_a_device(self):
        """Check that Nova sees consumed amounts as used, and that no claim exceeds the card."""
        assert self.candidates_by_host() == {}
        for number in (0, 1):
            self.condition(self.provider("_gpu", number), "DELETE")
        assert self.claim_for(self.instance, self.candidates_by_host()[0])
        assert self.used_slices() == [SLICES_OF_GPU, 0]
        limits = self.client.get_usages_counts_for_limits(self.context, PROJECT)
        assert limits == {"VCPU": 2, GPU: 1}
        gpu = self.provider("_gpu")
        too_many = {"allocations": {gpu: {"resources": {GPU: 4}}}}
        assert self.claim_for(str(uuid.uuid4()), too_many) is False

    def leave(self):
        """The first host fails: a plan names the server, and the scheduler gets no candidate there."""
        self.condition(self.hosts[0], effect="leave", reason="uncorrectable errors")
        plan = self.plan()
        (move,) = plan["moves"]
        assert move["consumer"] == self.instance
        assert set(move["to"]) == {self.hosts[1], self.provider("_gpu", 1)}
        assert set(self.candidates_by_host()) == {1}

    def plan(self):
        """Return a plan that empties providers with a condition of the effect `leave`."""
        # The clouds of other tests have no GPU with such attributes.
        own_gpu = f"where_GPU=mem_gib=={ATTRIBUTES['mem_gib']}"
        query = f"resources=VCPU:2&resources_GPU={GPU}:1&{own_gpu}&group_policy=none"
        body = {"goal": {"leave": True}, "requests": {self.instance: [query]}}
        return self.call_extension("POST", "/treeclaim/moves", body)

    def fail_migration(self):
        """A live migration that fails goes back to the host that is to be left."""
        client, before = self.client, self.held()
        assert client.move_allocations(self.context, self.instance, self.migration)
        assert self.used_slices() == [SLICES_OF_GPU, 0]
        assert self.claim_for(self.instance, self.candidates_by_host()[1])
        assert self.used_slices() == [SLICES_OF_GPU, SLICES_OF_GPU]
        assert client.delete_allocation_for_instance(self.context, self.instance)
        assert client.move_allocations(self.context, self.migration, self.instance)
        assert set(self.held()) == set(before)
        assert self.used_slices() == [SLICES_OF_GPU, 0]

    def evacuate_a_device(self):
        """A claim on both hosts keeps the amounts on the first, until Nova releases them."""
        assert self.claim_for(self.instance, self.candidates_by_host()[1])
        assert self.used_slices() == [SLICES_OF_GPU, SLICES_OF_GPU]
        self.client.remove_provider_tree_from_instance_allocation(
            self.context, self.instance, self.hosts[1]
        )
        assert set(self.held()) == {self.hosts[0], self.provider("_gpu")}

    def reshape_a_host_to_leave(self):
        """Move the allocations of a host with such a condition to its new providers, as a driver would."""
        tree, allocations, child = self.move_vcpu_to_child()
        self.client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert set(self.held()) == {child, self.provider("_gpu")}
        assert self.used_slices() == [SLICES_OF_GPU, 0]
        assert len(self.plan()["moves"]) == 1

    def reshape_devices(self):
        """A driver moves its GPUs to another provider with the claims; their consumption is written again."""
        client, name = self.client, self.names[0]
        gpu, card = self.provider("_gpu"), self.provider("_card")
        self.reshape_without_card()
        tree, allocations = self.read_tree()
        tree.new_child(f"{name}_gpu0", f"{name}_card")
        child = tree.data(f"{name}_gpu0").uuid
        tree.update_inventory(child, {GPU: inventory(4)})
        tree.update_inventory(f"{name}_gpu", {})
        held = allocations[self.instance]["allocations"]
        held[child] = held.pop(gpu)
        client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert self.used_slices() == [0, 0]
        self.let_gpu_consume(child, card)
        assert self.used_slices() == [SLICES_OF_GPU, 0]

    def reshape_without_card(self):
        """Nova understands that consumed inventories cannot be deleted."""
        tree, allocations = self.read_tree()
        tree.update_inventory(f"{self.names[0]}_card", {})
        with refused("a reshape without a consumed inventory", exception.ReshapeFailed):
            self.client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert self.used_slices() == [SLICES_OF_GPU, 0]

    def finish_migration(self):
        """The live migration ends: no consumer is left on the failed host."""
        client = self.client
        assert client.move_allocations(self.context, self.instance, self.migration)
        assert self.claim_for(self.instance, self.candidates_by_host()[1])
        assert client.delete_allocation_for_instance(
            self.context, self.migration, consumer_type="migration"
        )
        assert set(self.held()) == {self.hosts[1], self.provider("_gpu", 1)}
        assert self.used_slices() == [0, SLICES_OF_GPU]
        plan = self.plan()
        assert (plan["reached"], plan["moves"]) == (True, [])

    def remove(self):
        """Hosts are removed as their compute services are, each provider after those that consume it."""
        assert self.client.delete_allocation_for_instance(self.context, self.instance, force=True)
        for host, name in zip(self.hosts, self.names, strict=True):
            node = objects.ComputeNode(uuid=host, hypervisor_hostname=name, host=name)
            self.client.delete_resource_provider(self.context, node)
            assert self.client.get(f"/resource_providers/{host}").status_code != 200


STEPS = (
    Devices.report_trees,
    Devices.describe_devices,
    Devices.refresh,
    Devices.claim_a_device,
    Devices.leave,
    Devices.fail_migration,
    Devices.evacuate_a_device,
    Devices.reshape_a_host_to_leave,
    Devices.reshape_devices,
    Devices.finish_migration,
    Devices.remove,
)


if __name__ == "__main__":
    run_steps(Devices, STEPS)
