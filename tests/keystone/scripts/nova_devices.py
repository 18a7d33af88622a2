# SPDX-License-Identifier: Apache-2.0
"""Drives Nova's client over hosts with consumption, attributes and conditions; runs where Nova is installed.

Called with the name of a nova.conf. Nova is as it is: it knows nothing of them.
"""

import sys
import uuid

from nova import config, exception, objects
from report_client import GPU, PROJECT, TRAITS, Deployment, inventory
from steps import do_all

KNOWS = {"OpenStack-API-Version": "placement 1.39, treeclaim 1.0"}
SLICE = "CUSTOM_REPORTED_SLICE"
SLICES, EACH = 8, 2
"""Slices of a card, and how many each GPU takes."""
NUMBERS = {"mem_gib": 80, "driver": "570.86.10", "ecc": True}


class Devices(Deployment):
    """Two hosts whose GPUs take slices of a card, which an operator added; and a server on the first."""

    def call(self, method, path, body=None, status=200):
        """Send a request of an operator; return the body of the response."""
        answer = self.client._client.request(path, method, json=body, headers=KNOWS)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.text else None

    def provider(self, ending, number=0):
        """The uuid of a provider of a host, by the end of its name."""
        name = f"{self.names[number]}{ending}"
        (match,) = self.call("GET", f"/resource_providers?name={name}")["resource_providers"]
        return match["uuid"]

    def used(self, ending, number=0):
        """Return the usages of a provider, as Nova sees them."""
        path = f"/resource_providers/{self.provider(ending, number)}/usages"
        return self.client.get(path, version="1.39").json()["usages"]

    def condition(self, provider, method="PUT", **members):
        """Put a condition of a provider, or delete it."""
        path = f"/treeclaim/providers/{provider}/conditions/FAILING"
        self.call(method, path, members or None, status=204)

    def candidate(self):
        """By host what the scheduler is offered for the server's flavor."""
        parameters = {f"resources_GPU:{GPU}": "1", "group_policy": "none"}
        candidate_list = self.candidates(parameters, memory=0)
        return {
            number: candidate
            for number, host in enumerate(self.hosts)
            for candidate in candidate_list
            if host in candidate["allocations"]
        }

    def tell_of_devices(self):
        """An operator puts the GPUs of each host below a card, and says what they take of it."""
        self.call("PUT", f"/resource_classes/{SLICE}", status=201)
        for number, host in enumerate(self.hosts):
            card = str(uuid.uuid4())
            gpu = self.provider("_gpu", number)
            entry = {
                "uuid": card,
                "name": f"{self.names[number]}_card",
                "parent_provider_uuid": host,
            }
            entry |= {"inventories": {SLICE: {"total": SLICES}}, "attributes": NUMBERS}
            self.call("POST", "/treeclaim/providers", {"providers": [entry]})
            moved = {"name": self.call("GET", f"/resource_providers/{gpu}")["name"]}
            moved["parent_provider_uuid"] = card
            self.call("PUT", f"/resource_providers/{gpu}", moved)
            shown = self.call("GET", f"/resource_providers/{gpu}/inventories")
            entries = [{"provider": card, "resource_class": SLICE, "amount": EACH}]
            shown["inventories"][GPU]["consumes"] = entries
            self.call("PUT", f"/resource_providers/{gpu}/inventories", shown)
            numbers = self.call("GET", f"/treeclaim/providers/{gpu}/attributes") | {
                "attributes": NUMBERS
            }
            self.call("PUT", f"/treeclaim/providers/{gpu}/attributes", numbers)
            self.condition(gpu, effect="no_new", reason="kept")

    def refresh(self):
        """A refresh of inventories, traits and aggregates keeps all that Nova does not know."""
        before = self.told()
        for number in (0, 1):
            self.report_tree_anew(number)
        assert self.told() == before
        for number in (0, 1):
            self.write_past_the_tree(number)
        assert self.told() == before

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

    def write_past_the_tree(self, number):
        """Inventories and traits of a provider that is written alone."""
        gpu = self.provider("_gpu", number)
        client = self.client
        client.clear_provider_cache()
        client.get_provider_tree_and_ensure_root(self.context, self.hosts[number])
        client.set_inventory_for_provider(self.context, gpu, {GPU: inventory(5)})
        client.set_traits_for_provider(self.context, gpu, ["CUSTOM_REPORTED_FAST"])

    def told(self):
        """Return what the service has of cards and GPUs beside Nova's records."""
        include = "inventories,attributes,conditions"
        extensions_by_name = {}
        for host in self.hosts:
            path = f"/treeclaim/providers?in_tree={host}&include={include}"
            for provider in self.call("GET", path)["providers"]:
                consumes = {
                    name: inventory["consumes"]
                    for name, inventory in provider["inventories"].items()
                }
                extensions_by_name[provider["name"]] = (
                    provider["attributes"],
                    provider["conditions"],
                    consumes,
                )
        gpu, card = (
            extensions_by_name[f"{self.names[0]}{ending}"] for ending in ("_gpu", "_card")
        )
        assert gpu[0] == card[0] == NUMBERS
        assert gpu[1]["FAILING"]["reason"] == "kept"
        assert gpu[2][GPU][0]["amount"] == EACH
        return extensions_by_name

    def claim_a_device(self):
        """Check that Nova sees consumed amounts as used, and that no claim exceeds the card."""
        assert self.candidate() == {}
        for number in (0, 1):
            self.condition(self.provider("_gpu", number), "DELETE")
        assert self.claim_for(self.instance, self.candidate()[0])
        assert self.used("_card") == {SLICE: EACH}
        limits = self.client.get_usages_counts_for_limits(self.context, PROJECT)
        assert limits == {"VCPU": 2, GPU: 1}
        gpu = self.provider("_gpu")
        too_many = {"allocations": {gpu: {"resources": {GPU: 4}}}}
        assert self.claim_for(str(uuid.uuid4()), too_many) is False

    def leave(self):
        """The first host fails: a plan says who has to leave it, and the scheduler does not offer it."""
        self.condition(self.hosts[0], effect="leave", reason="uncorrectable errors")
        plan = self.plan()
        (move,) = plan["moves"]
        assert move["consumer"] == self.instance
        assert set(move["to"]) == {self.hosts[1], self.provider("_gpu", 1)}
        assert set(self.candidate()) == {1}

    def plan(self):
        """A plan for all to be gone whom a condition asks to leave."""
        # The clouds of other tests have none with such numbers.
        ours = f"where_GPU=mem_gib=={NUMBERS['mem_gib']}"
        query = f"resources=VCPU:2&resources_GPU={GPU}:1&{ours}&group_policy=none"
        body = {"goal": {"leave": True}, "requests": {self.instance: [query]}}
        return self.call("POST", "/treeclaim/moves", body)

    def come_back(self):
        """A live migration that fails goes back to the host that is to be left."""
        client, before = self.client, self.held()
        assert client.move_allocations(self.context, self.instance, self.migration)
        assert self.used("_card") == {SLICE: EACH}
        assert self.claim_for(self.instance, self.candidate()[1])
        assert self.used("_card", 1) == {SLICE: EACH}
        assert client.delete_allocation_for_instance(self.context, self.instance)
        assert client.move_allocations(self.context, self.migration, self.instance)
        assert set(self.held()) == set(before)
        assert (self.used("_card"), self.used("_card", 1)) == ({SLICE: EACH}, {SLICE: 0})

    def evacuate_a_device(self):
        """A claim on both hosts keeps what is on the first, until Nova lets go of it."""
        assert self.claim_for(self.instance, self.candidate()[1])
        assert (self.used("_card"), self.used("_card", 1)) == ({SLICE: EACH}, {SLICE: EACH})
        self.client.remove_provider_tree_from_instance_allocation(
            self.context, self.instance, self.hosts[1]
        )
        assert set(self.held()) == {self.hosts[0], self.provider("_gpu")}

    def reshape_a_host_to_leave(self):
        """A driver moves what is on a host with such a condition to new providers of it."""
        client, host, name = self.client, self.hosts[0], self.names[0]
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(self.context, host)
        allocations = client.get_allocations_for_provider_tree(self.context, name)
        tree.new_child(f"{name}_numa0", name)
        child = tree.data(f"{name}_numa0").uuid
        tree.update_inventory(child, {"VCPU": inventory(16)})
        tree.update_inventory(name, {"MEMORY_MB": inventory(4096)})
        held = allocations[self.instance]["allocations"]
        held[child] = held.pop(host)
        client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert set(self.held()) == {child, self.provider("_gpu")}
        assert self.used("_card") == {SLICE: EACH}
        assert len(self.plan()["moves"]) == 1

    def reshape_devices(self):
        """A driver moves its GPUs to another provider: the claims go along, what they take is told anew."""
        client, host, name = self.client, self.hosts[0], self.names[0]
        gpu, card = self.provider("_gpu"), self.provider("_card")
        self.refuse_a_reshape_without_the_card(card)
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(self.context, host)
        allocations = client.get_allocations_for_provider_tree(self.context, name)
        tree.new_child(f"{name}_gpu0", f"{name}_card")
        child = tree.data(f"{name}_gpu0").uuid
        tree.update_inventory(child, {GPU: inventory(4)})
        tree.update_inventory(f"{name}_gpu", {})
        held = allocations[self.instance]["allocations"]
        held[child] = held.pop(gpu)
        client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert self.used("_card") == {SLICE: 0}
        shown = self.call("GET", f"/resource_providers/{child}/inventories")
        entries = [{"provider": card, "resource_class": SLICE, "amount": EACH}]
        shown["inventories"][GPU]["consumes"] = entries
        self.call("PUT", f"/resource_providers/{child}/inventories", shown)
        assert self.used("_card") == {SLICE: EACH}

    def refuse_a_reshape_without_the_card(self, card):
        """Nova understands that what others consume cannot go."""
        client, host, name = self.client, self.hosts[0], self.names[0]
        client.clear_provider_cache()
        tree = client.get_provider_tree_and_ensure_root(self.context, host)
        allocations = client.get_allocations_for_provider_tree(self.context, name)
        tree.update_inventory(f"{name}_card", {})
        try:
            client.update_from_provider_tree(self.context, tree, allocations=allocations)
        except exception.ReshapeFailed:
            assert self.used("_card") == {SLICE: EACH}
            return
        raise AssertionError("a reshape took what others consume")

    def go(self):
        """The live migration ends: nobody is where somebody has to leave."""
        client = self.client
        assert client.move_allocations(self.context, self.instance, self.migration)
        assert self.claim_for(self.instance, self.candidate()[1])
        assert client.delete_allocation_for_instance(
            self.context, self.migration, consumer_type="migration"
        )
        assert set(self.held()) == {self.hosts[1], self.provider("_gpu", 1)}
        assert (self.used("_card"), self.used("_card", 1)) == ({SLICE: 0}, {SLICE: EACH})
        plan = self.plan()
        assert (plan["reached"], plan["moves"]) == (True, [])

    def remove(self):
        """Hosts are removed as their compute services are, each provider after those that consume it."""
        assert self.client.delete_allocation_for_instance(self.context, self.instance, force=True)
        assert not self.is_left_of(0)
        assert not self.is_left_of(1)

    def is_left_of(self, number):
        """Remove a host, and tell whether it is still there."""
        host, name = self.hosts[number], self.names[number]
        node = objects.ComputeNode(uuid=host, hypervisor_hostname=name, host=name)
        self.client.delete_resource_provider(self.context, node)
        return self.client.get(f"/resource_providers/{host}").status_code == 200


STEPS = (
    Devices.report_trees,
    Devices.tell_of_devices,
    Devices.refresh,
    Devices.claim_a_device,
    Devices.leave,
    Devices.come_back,
    Devices.evacuate_a_device,
    Devices.reshape_a_host_to_leave,
    Devices.reshape_devices,
    Devices.go,
    Devices.remove,
)


def main():
    config.parse_args(["nova-devices", "--config-file", sys.argv[1]])
    objects.register_all()
    do_all(STEPS, Devices())
    print("[]")


if __name__ == "__main__":
    main()
