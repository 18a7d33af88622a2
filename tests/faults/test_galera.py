# SPDX-License-Identifier: Apache-2.0
"""MariaDB Galera, three nodes: one dies and comes back, and all are written to at once."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests.databases import GaleraNode
from tests.faults.harness.load import Load, build
from tests.faults.harness.service import body_of, client_of, running
from tests.ports import free_port
from tests.proxy import Proxy
from tests.servers import eventually
from tests.store.hosts import write_inventories
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    CapacityExceededError,
    ConcurrentChangeError,
    InvalidParentError,
    ProviderNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.extension.errors import ConditionedError, ConsumptionError
from treeclaim.model.parts import AGGREGATES
from treeclaim.model.provider import Condition, Consumption, Effect, Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.transactions import WriteTransaction
from treeclaim.store.feed import shards
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue import resource_classes, standard_names
from treeclaim.store.operations.providers import conditions, providers
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.schema import revisions as schema

NODES = 3
WRITES = 40
BALLAST = 200_000
CORES = 8
ROUNDS = 30
NOWHERE = "99999999-0000-4000-8000-000000000000"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(galera):
    """Three nodes, all in the cluster."""
    ports = [free_port() for _ in range(NODES)]
    nodes = [GaleraNode(number, ports) for number in range(NODES)]
    eventually(lambda: nodes[0].status("wsrep_cluster_size") == str(NODES))
    yield nodes
    for node in reversed(nodes):
        node.stop()


def at_node(database, node):
    return make_url(database).set(port=node.port).render_as_string(hide_password=False)


def read_allocations(database):
    """All allocations, as one node has them."""
    engine = sa.create_engine(database)
    query = "SELECT consumer_id, resource_provider_id, used FROM allocations"
    with engine.connect() as connection:
        connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
        allocations = sorted(tuple(row) for row in connection.exec_driver_sql(query))
    engine.dispose()
    return allocations


def require_equal(cluster, database):
    """Check that all nodes have the same allocations."""
    first, *remaining = (read_allocations(at_node(database, node)) for node in cluster)
    assert all(allocations == first for allocations in remaining)


@pytest.fixture(scope="module")
def services(cluster, tmp_path_factory):
    """Yield a service at the first node and one at the second, both on one database."""
    folder = tmp_path_factory.mktemp("services")
    with cluster[0].database(folder) as database, ExitStack() as stack:
        yield [
            stack.enter_context(running(at_node(database, node), folder, workers=2))
            for node in cluster[:2]
        ]


@pytest.mark.parametrize("source", ["candidates", "inventory"])
def test_worker_on_a_lagging_node_waits_for_current_data(cluster, services, source):
    read_total = {"candidates": total_in_candidates, "inventory": total_stored}[source]
    provider = build(services[0].url).hosts[0]
    engine = sa.create_engine(cluster[1].url("mysql"))
    with (
        ThreadPoolExecutor() as pool,
        client_of(services[0].url) as writing,
        client_of(services[1].url) as reading,
        engine.connect() as connection,
    ):
        read_total(reading, provider)
        # From here on the node receives what others commit, but does not carry it out.
        connection.exec_driver_sql("FLUSH TABLES WITH READ LOCK")
        set_total(writing, provider, 77, generation=1)
        total = pool.submit(read_total, reading, provider)
        with pytest.raises(TimeoutError):
            total.result(timeout=1)
        connection.exec_driver_sql("UNLOCK TABLES")
        assert total.result(timeout=30) == 77
    engine.dispose()


def total_stored(client, provider):
    """The total of the inventory of VCPU, as a node stores it."""
    return body_of(client, f"/resource_providers/{provider}/inventories/VCPU")["total"]


def set_total(client, provider, total, generation):
    """Change that total; it must be taken."""
    path = f"/resource_providers/{provider}/inventories/VCPU"
    answer = client.put(path, json={"total": total, "resource_provider_generation": generation})
    assert answer.status_code == 200, answer.text


def total_in_candidates(client, provider):
    """The capacity of VCPU that the summaries of candidates show."""
    answer = body_of(client, "/allocation_candidates?resources=VCPU:1")
    return answer["provider_summaries"][provider]["resources"]["VCPU"]["capacity"]


def test_killed_node_loses_no_acknowledged_write_and_rejoins(cluster, tmp_path):
    first, second, third = cluster
    proxy = Proxy(first.port, second.port, third.port)
    with second.database(tmp_path) as database, started_again(first):
        with running(proxy.url(database), tmp_path) as service:
            with Load(service.url) as load:
                load.wait_for(WRITES)
                first.kill()
                load.wait_for(WRITES)
                proxy.targets = (second.port, third.port)
                first.start()
                load.wait_for(WRITES)
            load.judge()
        eventually(lambda: second.status("wsrep_cluster_size") == str(NODES))
        require_equal(cluster, database)
    proxy.close()


@contextmanager
def started_again(node):
    """The node is in the cluster again for other tests, after any outcome."""
    try:
        yield
    finally:
        if node.process.poll() is not None:
            node.start()


class Paused:
    """An operation that, the first time, has done all but COMMIT when something else happens."""

    def __init__(self, operation, meanwhile):
        self.operation = operation
        self.meanwhile = meanwhile
        self.runs = 0

    def __call__(self, transaction, *args, **kwargs):
        result = self.operation(transaction, *args, **kwargs)
        self.runs += 1
        if self.runs == 1:
            self.meanwhile()
        return result


@pytest.fixture
def stores(cluster, tmp_path):
    """The store, at the first node and at the second."""
    with cluster[0].database(tmp_path) as database:
        pair = [Store(DatabaseSettings(at_node(database, node))) for node in cluster[:2]]
        schema.sync(pair[0].engine)
        yield pair
        for store in pair:
            store.close()


@pytest.fixture
def cloud(stores):
    """The uuids of providers by name; each unit of the devices "left" and "right" consumes a core of their host."""
    store, _ = stores
    store.write(standard_names.sync_standard_names)
    store.write(resource_classes.create, "CUSTOM_GOLD")
    cloud = {}
    for name, parent in PARENTS.items():
        cloud[name] = str(uuid.uuid4())
        store.write(
            providers.create, uuid=cloud[name], name=name, parent_uuid=parent and cloud[parent]
        )
    store.write(write_inventories, cloud["host"], {"VCPU": Inventory(CORES)})
    for device in ("left", "right"):
        store.write(write_inventories, cloud[device], {"VGPU": consuming(cloud)})
    return cloud


PARENTS = {
    "root": None,
    "host": "root",
    "left": "host",
    "right": "host",
    "below left": "left",
    "below right": "right",
    "slot": "host",
    "card": "slot",
    "elsewhere": None,
}


def consuming(cloud):
    """An inventory with units that consume cores of the host."""
    return Inventory(100, consumes=[Consumption(cloud["host"], "VCPU", 1)])


def claim_of(provider, name, amount):
    """A claim of a new consumer."""
    return ConsumerClaim(str(uuid.uuid4()), {provider: {name: amount}}, "project", "user", None)


def claiming(*arguments):
    return allocations.write_request, ClaimRequest([claim_of(*arguments)])


def stocking(provider, **inventories):
    return write_inventories, provider, inventories


def moving(cloud, name, parent):
    move = partial(providers.update, name=name, parent=cloud[parent], may_reparent=True)
    return move, cloud[name]


PAIRS = {
    "claims on one inventory": (
        CapacityExceededError,
        lambda cloud: claiming(cloud["host"], "VCPU", 5),
        lambda cloud: claiming(cloud["host"], "VCPU", 5),
    ),
    # No row of the one claim is a row of the other.
    "claims that consume one inventory": (
        CapacityExceededError,
        lambda cloud: claiming(cloud["left"], "VGPU", 2),
        lambda cloud: claiming(cloud["right"], "VGPU", CORES - 1),
    ),
    "claim and condition of an ancestor": (
        ConditionedError,
        lambda cloud: claiming(cloud["left"], "VGPU", 1),
        lambda cloud: (conditions.put, cloud["host"], Condition("CLEANING", Effect.NO_NEW)),
    ),
    "moves that make a loop": (
        InvalidParentError,
        lambda cloud: moving(cloud, "left", "below right"),
        lambda cloud: moving(cloud, "right", "below left"),
    ),
    # The tree stays the same, so no row of the card is written.
    "consumption and move of an ancestor": (
        ConsumptionError,
        lambda cloud: stocking(cloud["card"], VGPU=consuming(cloud)),
        lambda cloud: moving(cloud, "slot", "root"),
    ),
    "inventory and deletion of its class": (
        ResourceClassNotFoundError,
        lambda cloud: stocking(cloud["card"], CUSTOM_GOLD=Inventory(8)),
        lambda _: (resource_classes.delete, "CUSTOM_GOLD"),
    ),
    "aggregates and deletion of their provider": (
        ProviderNotFoundError,
        lambda cloud: (write_part, cloud["card"], AGGREGATES, [NOWHERE]),
        lambda cloud: (providers.delete, cloud["card"]),
    ),
}
"""By kind of write: the error of the first node, its write, and the write of the other node before its commit."""


@pytest.mark.parametrize("lags", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_write_respects_a_write_of_another_node(stores, cloud, lag, pair, lags):
    first_store, second_store = stores
    error, write_of, other_of = PAIRS[pair]
    operation, *arguments = write_of(cloud)
    other, *other_arguments = other_of(cloud)

    def write_there():
        if lags:
            lag()
        second_store.write(other, *other_arguments)

    with pytest.raises(error):
        first_store.write(Paused(operation, write_there), *arguments)


def test_child_of_a_parent_moving_on_another_node_has_the_right_root(stores, cloud):
    first_store, second_store = stores
    move, *arguments = moving(cloud, "slot", "elsewhere")
    create = Paused(providers.create, lambda: second_store.write(move, *arguments))
    child = first_store.write(
        create, uuid=str(uuid.uuid4()), name="child", parent_uuid=cloud["slot"]
    )
    assert create.runs == 2
    assert child.root_uuid == cloud["elsewhere"]


def test_take_over_that_meets_a_write_of_another_node_is_repeated(stores, monkeypatch):
    first_store, second_store = stores
    second_store.write(WriteTransaction.touch_catalogue)
    take_over = shards.take_over

    def take_over_too_late(connection):
        monkeypatch.undo()
        take_over(connection)
        second_store.write(WriteTransaction.touch_catalogue)

    monkeypatch.setattr(shards, "take_over", take_over_too_late)
    before = first_store.load_changes(None).cursor
    first_store.write(WriteTransaction.touch_catalogue)
    assert first_store.load_changes(before).catalogue is not None


def units_claimed(store):
    """All units that consumers hold."""
    with store.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT SUM(used) FROM allocations").scalar() or 0)


def test_two_nodes_written_to_at_once_do_not_overbook_consumed_capacity(stores, cloud):
    """As in a failover, when sessions on the former node live on: both claim all cores, and one gets them."""

    def claim_all(store, device, barrier):
        claim = claim_of(device, "VGPU", CORES)
        barrier.wait()
        while True:
            try:
                store.replace_allocations([claim])
            except CapacityExceededError:
                return None
            except ConcurrentChangeError:
                continue
            return claim.consumer_uuid

    devices = (cloud["left"], cloud["right"])
    with ThreadPoolExecutor(len(stores)) as pool:
        for _ in range(ROUNDS):
            barriers = [threading.Barrier(len(stores))] * len(stores)
            winners = list(pool.map(claim_all, stores, devices, barriers))
            assert [units_claimed(store) for store in stores] == [CORES, CORES]
            (winner,) = (consumer for consumer in winners if consumer is not None)
            stores[0].delete_allocations(winner)


@pytest.fixture
def lag(stores):
    """Keeps the first node busy with commits of the second node, so that it lags behind.

    Without the lag, a replicated commit would meet a lock on the first node in time, as if locks worked on both nodes.
    """
    _, second_store = stores
    with second_store.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TABLE ballast (id INT AUTO_INCREMENT PRIMARY KEY, text CHAR(200)) ENGINE=InnoDB"
        )

    def keep_busy():
        with second_store.engine.begin() as connection:
            connection.exec_driver_sql(
                f"INSERT INTO ballast (text) SELECT REPEAT('x', 200) FROM seq_1_to_{BALLAST}"
            )

    return keep_busy
