# SPDX-License-Identifier: Apache-2.0
"""A database that openstack-placement filled is served by Treeclaim, and goes back again.

The other service runs as a black box, from a virtual environment of its own that the benchmark uses
too. Where that cannot be made, the tests are skipped and say so.
"""

import uuid
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from tests import peer
from tests.bodies import claim_of
from tests.databases import EACH_DATABASE, empty_database
from tests.takeover.recording import find_changes, record
from treeclaim.cli.main import main
from treeclaim.client import Client

SPACE = uuid.UUID("5a4b1f0e-7a0b-4c0e-9d11-0c7c3d0a9f55")
PROJECTS = ("p1", "p2", "00000000-0000-0000-0000-000000000000")


def named(name):
    """The uuid that stands for a name."""
    return str(uuid.uuid5(SPACE, name))


CONSUMERS = [named(f"consumer {number}") for number in range(8)]


class Writer:
    """Writes to one service; a write that is refused raises an error."""

    def __init__(self, client):
        self.client = client
        self.write = client.call

    def write_part(self, provider, part, body):
        """Write a part of a provider at its present generation."""
        path = f"/resource_providers/{named(provider)}"
        generation = self.client.get(path)["generation"]
        self.write("PUT", f"{path}/{part}", body | {"resource_provider_generation": generation})

    def provider(self, name, parent=None, *, stock=None, traits=(), aggregates=()):
        """Create a provider with all that belongs to it."""
        body = {"name": name, "uuid": named(name)}
        if parent:
            body["parent_provider_uuid"] = named(parent)
        self.write("POST", "/resource_providers", body)
        if stock:
            inventories = {name: {"total": total} for name, total in stock.items()}
            self.write_part(name, "inventories", {"inventories": inventories})
        if traits:
            self.write_part(name, "traits", {"traits": list(traits)})
        if aggregates:
            uuids = [named(aggregate) for aggregate in aggregates]
            self.write_part(name, "aggregates", {"aggregates": uuids})

    def claim(self, number, held, project="p1", kind="INSTANCE"):
        consumer = CONSUMERS[number]
        body = self.holding(consumer, held, project, kind)
        self.write("PUT", f"/allocations/{consumer}", body)

    def holding(self, consumer, held, project="p1", kind="INSTANCE"):
        """The body of a claim at the present generation of its consumer."""
        shown = self.client.get(f"/allocations/{consumer}")
        return claim_of(
            {named(name): {"resources": amounts} for name, amounts in held.items()},
            project_id=project,
            user_id="u1",
            consumer_generation=shown.get("consumer_generation"),
            consumer_type=kind,
        )

    def move(self, source, target, held):
        """Give what one consumer holds to another one, in one request."""
        body = {
            CONSUMERS[target]: self.holding(CONSUMERS[target], held, kind="MIGRATION"),
            CONSUMERS[source]: self.holding(CONSUMERS[source], {}),
        }
        self.write("POST", "/allocations", body)


def fill(writer):
    """The world as it is before the takeover."""
    for name in ("CUSTOM_FAST", "CUSTOM_PF"):
        writer.write("PUT", f"/traits/{name}")
    for name in ("CUSTOM_FPGA", "CUSTOM_OLD"):
        writer.write("PUT", f"/resource_classes/{name}")
    for number in (1, 2):
        host = f"host {number}"
        writer.provider(
            host,
            stock={"MEMORY_MB": 4096},
            traits=["HW_CPU_X86_AVX2", *["CUSTOM_FAST"] * (number - 1)],
            aggregates=["rack", *["zone"] * (number - 1)],
        )
        for cell in (0, 1):
            writer.provider(f"{host} cell {cell}", host, stock={"VCPU": 8})
        writer.provider(
            f"{host} card", f"{host} cell 0", stock={"CUSTOM_FPGA": 2}, traits=["CUSTOM_PF"]
        )
    writer.provider(
        "storage",
        stock={"DISK_GB": 1000},
        traits=["MISC_SHARES_VIA_AGGREGATE"],
        aggregates=["rack"],
    )
    writer.provider("flat host", stock={"VCPU": 4, "MEMORY_MB": 1024, "DISK_GB": 50})
    writer.claim(0, {"host 1 cell 0": {"VCPU": 2}, "host 1": {"MEMORY_MB": 512}})
    writer.claim(1, {"host 2 cell 1": {"VCPU": 8}, "storage": {"DISK_GB": 20}}, "p2")
    writer.claim(2, {"host 1 card": {"CUSTOM_FPGA": 1}}, "p2", "MIGRATION")
    # A claim as old clients made it, without project and user.
    body = {
        "allocations": [
            {"resource_provider": {"uuid": named("flat host")}, "resources": {"VCPU": 1}}
        ]
    }
    writer.write("PUT", f"/allocations/{CONSUMERS[3]}", body, minor=0)


def age(database):
    """Make some rows older than the rules, as databases of many releases have them."""
    engine = sa.create_engine(database)
    with engine.begin() as connection:
        for statement in (
            f"DELETE FROM consumers WHERE uuid = '{CONSUMERS[3]}'",
            (
                "UPDATE inventories SET total = 5 WHERE resource_provider_id = "
                f"(SELECT id FROM resource_providers WHERE uuid = '{named('host 2 cell 1')}')"
            ),
            "UPDATE resource_providers SET updated_at = NULL",
        ):
            assert connection.exec_driver_sql(statement).rowcount
    engine.dispose()


def change(writer):
    """Send every kind of write."""
    writer.write("PUT", "/resource_classes/CUSTOM_NEW")
    writer.write("DELETE", "/resource_classes/CUSTOM_OLD")
    writer.write("PUT", "/traits/CUSTOM_NEW")
    writer.provider("host 3", stock={"MEMORY_MB": 8192}, traits=["CUSTOM_NEW"])
    writer.provider("host 3 cell", "host 3", stock={"VCPU": 16, "CUSTOM_NEW": 3})
    writer.provider("short-lived", "host 3", stock={"VCPU": 1}, aggregates=["rack"])
    writer.write("DELETE", f"/resource_providers/{named('short-lived')}")
    path = f"/resource_providers/{named('host 2')}"
    writer.write("PUT", path, {"name": "host two"})
    writer.write_part("host 2", "traits", {"traits": ["CUSTOM_NEW"]})
    writer.write_part("host 2", "inventories/MEMORY_MB", {"total": 9000, "reserved": 100})
    body = {"name": "host 2 card", "parent_provider_uuid": named("host 2 cell 1")}
    writer.write("PUT", f"/resource_providers/{named('host 2 card')}", body)
    writer.claim(4, {"host 3 cell": {"VCPU": 3, "CUSTOM_NEW": 1}, "host 3": {"MEMORY_MB": 1}})
    writer.move(0, 5, {"host 1 cell 0": {"VCPU": 2}, "host 1": {"MEMORY_MB": 512}})
    writer.write("DELETE", f"/allocations/{CONSUMERS[2]}")


def change_again(writer):
    """Make the last writes of the first service."""
    writer.provider("host 4", stock={"VCPU": 2, "CUSTOM_NEW": 1}, traits=["CUSTOM_NEW"])
    writer.claim(6, {"host 4": {"VCPU": 1}, "host 3": {"MEMORY_MB": 7}})
    writer.claim(4, {"host 3 cell": {"VCPU": 1}})
    writer.write("DELETE", f"/allocations/{CONSUMERS[1]}")


@pytest.fixture(params=EACH_DATABASE)
def database(peer, request, tmp_path):
    """The URL of an empty database."""
    with empty_database(request.param, tmp_path) as url:
        yield url


def answers(service):
    """Return all answers of a service about its database."""
    return record(service, CONSUMERS, PROJECTS)


@pytest.mark.slow
def test_placement_database_is_taken_over_and_returned(database, tmp_path, monkeypatch, capsys):
    (tmp_path / "placement.conf").touch()
    monkeypatch.setenv("OS_PLACEMENT_CONFIG_DIR", str(tmp_path))
    with placement(database, tmp_path) as service:
        fill(Writer(service))
        age(database)
        filled_by_placement = answers(service)
    monkeypatch.setenv("OS_PLACEMENT_DATABASE__CONNECTION", database)
    assert main(["db", "check"]) == 1
    assert "consumers: 1 that hold allocations but have no record" in capsys.readouterr().out
    assert main(["db", "sync"]) == 0
    with ours(database, tmp_path) as service:
        assert find_changes(filled_by_placement, answers(service)) == []
        change(Writer(service))
        changed_by_treeclaim = answers(service)
    with placement(database, tmp_path) as service:
        assert find_changes(changed_by_treeclaim, answers(service)) == []
        change_again(Writer(service))
        changed_by_placement = answers(service)
    assert main(["db", "check"]) < 2, capsys.readouterr().out
    with ours(database, tmp_path) as service:
        assert find_changes(changed_by_placement, answers(service)) == []


@contextmanager
def connected(running):
    """Run a server for a block; yields a client of it."""
    with running as (url, _), Client(url, "admin") as client:
        yield client


def placement(database, folder):
    """openstack-placement on a database, for a block."""
    return connected(peer.openstack_placement_on(database, folder))


def ours(database, folder):
    """Treeclaim on a database, for a block."""
    return connected(peer.treeclaim_on(database, folder))
