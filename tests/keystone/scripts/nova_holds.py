# SPDX-License-Identifier: Apache-2.0
"""Runs `nova-manage placement` and Nova's periodic tasks with servers that draw from holds; needs an installed Nova.

The argument is the name of a nova.conf with existing databases. Nova is unmodified and does not know holds.
"""

import contextlib
import io
import logging
import sys
import uuid

from nova import config, exception, objects
from nova.cmd import manage
from nova.compute import resource_tracker
from nova.db.api import api as api_database
from nova.db.api import models as api_models
from nova.db.main import api as main_database
from nova.db.main import models as main_models
from nova.objects import fields
from report_client import PROJECT, USER, Deployment, run_steps
from steps import refused

HELD = 6
"""Units of VCPU that each host's hold has, of 32."""


class Commitments(Deployment):
    """Two hosts with a hold each, and a server that has drawn from the first."""

    def __init__(self):
        super().__init__()
        self.holds = [str(uuid.uuid4()) for _ in self.hosts]

    def make_databases(self):
        """Nova's own tables and records: a cell, two compute nodes, and the server on the first."""
        with main_database.context_manager.writer.using(self.context):
            main_models.BASE.metadata.create_all(self.context.session.get_bind())
        with api_database.context_manager.writer.using(self.context):
            api_models.BASE.metadata.create_all(self.context.session.get_bind())
        connection = config.CONF.database.connection
        for cell in (objects.CellMapping.CELL0_UUID, str(uuid.uuid4())):
            self.cell = objects.CellMapping(
                self.context,
                uuid=cell,
                name=cell,
                transport_url="none:///",
                database_connection=connection,
            )
            self.cell.create()
        self.nodes = list(map(self.compute_node, self.hosts, self.names))
        self.make_server()

    def compute_node(self, host, name):
        node = objects.ComputeNode(
            self.context,
            uuid=host,
            host=name,
            hypervisor_hostname=name,
            vcpus=16,
            memory_mb=4096,
            local_gb=1,
            vcpus_used=0,
            memory_mb_used=0,
            local_gb_used=0,
            hypervisor_type="kvm",
            hypervisor_version=1,
            cpu_info="",
        )
        node.create()
        objects.HostMapping(self.context, host=name, cell_mapping=self.cell).create()
        return node

    def make_server(self):
        """Record the server, with two processors."""
        flavor = objects.Flavor(
            self.context, name="two", memory_mb=0, vcpus=2, root_gb=0, ephemeral_gb=0, swap=0
        )
        flavor.update({"flavorid": "two", "rxtx_factor": 1.0, "vcpu_weight": 0, "disabled": False})
        flavor.update({"is_public": True, "extra_specs": {}})
        flavor.create()
        server = objects.Instance(
            self.context,
            uuid=self.instance,
            host=self.names[0],
            node=self.names[0],
            compute_id=self.nodes[0].id,
            project_id=PROJECT,
            user_id=USER,
            flavor=flavor,
            vm_state=fields.InstanceState.ACTIVE,
            task_state=None,
        )
        server.create()
        mapping = objects.InstanceMapping(
            self.context,
            instance_uuid=self.instance,
            cell_mapping=self.cell,
            project_id=PROJECT,
            user_id=USER,
        )
        mapping.create()

    def write(self, consumer, amounts, **members):
        """Write a consumer as a scheduler does that knows holds."""
        body = {"allocations": {host: {"resources": {"VCPU": n}} for host, n in amounts.items()}}
        body |= {"project_id": PROJECT, "user_id": USER, "consumer_generation": None}
        self.call_extension("PUT", f"/allocations/{consumer}", body | members, status=204)

    def seen(self, consumer):
        """Return a consumer as the extension shows it."""
        return self.call_extension("GET", f"/allocations/{consumer}")

    def has(self, number):
        """Return the held and the drawn VCPU of the hold of a host."""
        shown = self.seen(self.holds[number])
        if shown.get("hold") is None:
            return None
        held = [part["resources"]["VCPU"] for part in shown["allocations"].values()]
        drawn = [amounts["VCPU"] for amounts in shown["hold"]["drawn"].values()]
        return sum(held), sum(drawn)

    def drew(self, consumer):
        """Return the draws of a consumer by host."""
        return {
            host: amounts["VCPU"]
            for by_host in self.seen(consumer).get("drawn_from", {}).values()
            for host, amounts in by_host.items()
        }

    def draw(self):
        """Each host has a hold; the server draws from the first."""
        for hold, host in zip(self.holds, self.hosts, strict=True):
            self.write(hold, {host: HELD}, hold={"returns": True})
        self.place_server()

    def place_server(self):
        """Place a server as a scheduler does that knows holds."""
        self.write(
            self.instance,
            {self.hosts[0]: 2},
            consumer_type="INSTANCE",
            from_holds=[self.holds[0]],
        )
        assert self.has(0) == (HELD - 2, 2)

    def release_and_place(self):
        """The server is as in the beginning."""
        assert self.client.delete_allocation_for_instance(self.context, self.instance, force=True)
        assert self.has(0) == (HELD, 0)
        self.place_server()

    def heal(self):
        """`nova-manage placement heal_allocations` leaves holds and draws alone, with --force too."""
        done, _ = run("heal_allocations", skip_port_allocations=True)
        assert done == 4
        assert self.has(0) == (HELD - 2, 2)
        done, _ = run(
            "heal_allocations",
            skip_port_allocations=True,
            instance_uuid=self.instance,
            force=True,
        )
        assert done == 0
        assert self.drew(self.instance) == {self.hosts[0]: 2}
        assert self.client.delete_allocation_for_instance(self.context, self.instance, force=True)
        done, _ = run("heal_allocations", skip_port_allocations=True)
        assert done == 0
        assert self.held()[self.hosts[0]]["resources"] == {"VCPU": 2}
        assert self.has(0) == (HELD, 0)
        self.release_and_place()

    def track(self):
        """nova-compute's periodic check of allocations on its host ignores holds."""
        lines = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())
        resource_tracker.LOG.logger.addHandler(handler)
        resource_tracker.LOG.logger.setLevel(logging.INFO)
        tracker = resource_tracker.ResourceTracker(self.names[1], None, self.client)
        tracker._remove_deleted_instances_allocations(self.context, self.nodes[1], [], {})
        assert any(self.holds[1] in text and "not found in the database" in text for text in lines)
        assert self.has(1) == (HELD, 0)

    def fail_to_remove_a_host(self):
        """A host with a hold is not removed with its compute service."""
        with contextlib.suppress(exception.NovaException):
            self.client.delete_resource_provider(self.context, self.nodes[1], cascade=True)
        assert self.client.get(f"/resource_providers/{self.hosts[1]}").status_code == 200
        assert self.has(1) == (HELD, 0)

    def reshape_with_holds(self):
        """A driver moves what all consumers have that Nova lists, holds too, and draws go along."""
        client = self.client
        tree, allocations, child = self.move_vcpu_to_child()
        assert set(allocations) == {self.instance, self.holds[0]}
        without_hold = {self.instance: allocations[self.instance]}
        with refused("a reshape that takes what a hold has", exception.ReshapeFailed):
            client.update_from_provider_tree(self.context, tree, allocations=without_hold)
        client.update_from_provider_tree(self.context, tree, allocations=allocations)
        assert self.has(0) == (HELD - 2, 2)
        assert self.drew(self.instance) == {child: 2}

    def audit(self):
        """`nova-manage placement audit` lists holds as orphans, and --delete ends them."""
        done, output = run("audit", verbose=True)
        assert done == 3
        assert all(hold in output for hold in self.holds)
        assert (self.has(0), self.has(1)) == ((HELD - 2, 2), (HELD, 0))
        done, _ = run("audit", delete=True)
        assert done == 4
        assert (self.has(0), self.has(1)) == (None, None)
        assert self.drew(self.instance) == {}


def run(command, **options):
    """Return the exit status and the output of `nova-manage placement`."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        done = getattr(manage.PlacementCommands(), command)(**options)
    print(output.getvalue(), file=sys.stderr)
    return done, output.getvalue()


STEPS = (
    Commitments.report_trees,
    Commitments.make_databases,
    Commitments.draw,
    Commitments.heal,
    Commitments.track,
    Commitments.fail_to_remove_a_host,
    Commitments.reshape_with_holds,
    Commitments.audit,
)


if __name__ == "__main__":
    run_steps(Commitments, STEPS)
