# SPDX-License-Identifier: Apache-2.0
"""MariaDB Galera, three nodes: one dies and comes back, and all are written to at once."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests.databases import GaleraNode
from tests.faults.harness.load import Load, build
from tests.faults.harness.service import body_of, client_of, running
from tests.ports import free_port
from tests.proxy import Proxy
from tests.servers import eventually
from treeclaim.model.claim import ConsumerClaim
from treeclaim.model.errors import (
    CapacityExceededError,
    ConcurrentChangeError,
    InvalidParentError,
    ProviderNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.extension.errors import ConditionedError, ConsumptionError
from treeclaim.model.provider import Condition, Consumes, Effect, Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.operations.allocations import claims as allocations
from treeclaim.store.operations.allocations.requests import ClaimRequest
from treeclaim.store.operations.catalogue import resource_classes, standard_names
from treeclaim.store.operations.providers import conditions, providers
from treeclaim.store.reading.consumers import load_consumer
from treeclaim.store.schema import revisions as schema
from treeclaim.store.schema.tables import resource_providers

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


def held(database):
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
    first, *remaining = (held(at_node(database, node)) for node in cluster)
    assert all(allocations == first for allocations in remaining)


@pytest.fixture(scope="module")
def services(cluster, tmp_path_factory):
    """Yield a service at each node, all on one database."""
    folder = tmp_path_factory.mktemp("services")
    with cluster[0].database(folder) as database, ExitStack() as stack:
        yield [
            stack.enter_context(running(at_node(database, node), folder, workers=2))
            for node in cluster
        ]


def test_acknowledged_write_is_seen_at_once_on_other_nodes(services):
    provider = build(services[0].url).hosts[0]
    with ExitStack() as stack:
        clients = [stack.enter_context(client_of(service.url)) for service in services]
        for turn in range(12):
            writer, *readers = clients[turn % NODES :] + clients[: turn % NODES]
            set_total(writer, provider, 10 + turn, generation=1 + turn)
            for reader in readers:
                assert total_in_candidates(reader, provider) == 10 + turn
                assert total_stored(reader, provider) == 10 + turn


@pytest.mark.parametrize("source", ["candidates", "inventory"])
def test_worker_on_a_lagging_node_waits_for_current_data(cluster, services, source):
    read_total = {"candidates": total_in_candidates, "inventory": total_stored}[source]
    provider = build(services[0].url).hosts[0]
    engine = sa.create_engine(cluster[1].url("mysql"))
    with (
        client_of(services[0].url) as writing,
        client_of(services[1].url) as reading,
        engine.connect() as connection,
    ):
        read_total(reading, provider)
        # From here on the node receives what others commit, but does not carry it out.
        connection.exec_driver_sql("FLUSH TABLES WITH READ LOCK")
        set_total(writing, provider, 77, generation=1)
        totals = []
        reader = threading.Thread(target=lambda: totals.append(read_total(reading, provider)))
        reader.start()
        reader.join(timeout=1)
        assert not totals
        connection.exec_driver_sql("UNLOCK TABLES")
        reader.join(timeout=30)
        assert totals == [77]
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
            load = Load([service.url], build(service.url))
            with load:
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


def make(store, name, parent=None):
    """Create a provider whose uuid follows from its name."""
    return store.write(
        providers.create,
        uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        name=name,
        parent_uuid=parent,
    )


def test_child_of_a_parent_moving_on_another_node_has_the_right_root(stores):
    first_store, second_store = stores
    old, new = make(first_store, "old"), make(first_store, "new")
    parent = make(first_store, "parent", old.uuid)

    def move():
        second_store.write(providers.update, parent.uuid, name="parent", parent=new.uuid)

    create = Paused(providers.create, move)
    child = first_store.write(
        create, uuid=str(uuid.uuid4()), name="child", parent_uuid=parent.uuid
    )
    assert create.runs == 2
    assert child.root_uuid == new.uuid


def test_consuming_inventory_is_refused_when_another_node_moves_it(stores):
    first_store, second_store = stores
    first_store.write(standard_names.sync_standard_names)
    root = make(first_store, "root")
    host = make(first_store, "host", root.uuid)
    first_store.write(providers.write_inventories, host.uuid, {"VCPU": Inventory(8)})
    card = make(first_store, "card", host.uuid)
    device = make(first_store, "device", card.uuid)
    stock = {"MEMORY_MB": Inventory(2, consumes=[Consumes(host.uuid, "VCPU", 1)])}

    def move():
        # The tree stays the same, so no row of the device is written.
        second_store.write(providers.update, card.uuid, name="card", parent=root.uuid)

    replace = Paused(providers.write_inventories, move)
    with pytest.raises(ConsumptionError, match="nor an ancestor"):
        first_store.write(replace, device.uuid, stock, 0)


def test_concurrent_claims_on_two_nodes_do_not_overbook(stores):
    first_store, second_store = stores
    host = make(first_store, "host")
    first_store.write(standard_names.sync_standard_names)
    first_store.write(providers.write_inventories, host.uuid, {"VCPU": Inventory(8)})
    mine, theirs = (
        [ConsumerClaim(str(uuid.uuid4()), {host.uuid: {"VCPU": 5}}, "project", "user", None)]
        for _ in range(2)
    )
    claim = Paused(
        allocations.write_request,
        lambda: second_store.write(allocations.write_request, ClaimRequest(theirs)),
    )
    with pytest.raises(CapacityExceededError):
        first_store.write(claim, ClaimRequest(mine))
    assert claim.runs == 1
    assert second_store.read(load_consumer, theirs[0].consumer_uuid) is not None
    assert second_store.read(load_consumer, mine[0].consumer_uuid) is None


@pytest.fixture
def barring(stores):
    """A host with a card, a claim on the card, and a condition of the host."""
    first_store, _ = stores
    host = make(first_store, "host")
    card = make(first_store, "card", host.uuid)
    first_store.write(standard_names.sync_standard_names)
    first_store.write(providers.write_inventories, card.uuid, {"VGPU": Inventory(4)})
    claim = ConsumerClaim(str(uuid.uuid4()), {card.uuid: {"VGPU": 1}}, "project", "user", None)
    return host.uuid, Condition("CLEANING", Effect.NO_NEW), claim


def put_in_the_second_of_the_last_write(transaction, host, condition):
    """Put a condition in the very second in which a provider below was written."""
    transaction.now = transaction.row(sa.select(sa.func.max(resource_providers.c.updated_at)))[0]
    conditions.put(transaction, host, condition)


@pytest.mark.parametrize("put", [conditions.put, put_in_the_second_of_the_last_write])
def test_claim_respects_a_condition_set_on_another_node(stores, barring, put):
    first_store, second_store = stores
    host, condition, claim = barring
    claiming = Paused(allocations.write_request, lambda: second_store.write(put, host, condition))
    with pytest.raises(ConditionedError):
        first_store.write(claiming, ClaimRequest([claim]))
    assert held_by(stores, claim) == [None, None]


def test_condition_is_retried_after_a_claim_on_another_node(stores, barring):
    first_store, second_store = stores
    host, condition, claim = barring
    second_claim = replace(claim, consumer_uuid=str(uuid.uuid4()))
    putting = Paused(
        conditions.put,
        lambda: second_store.write(allocations.write_request, ClaimRequest([claim])),
    )
    first_store.write(putting, host, condition)
    assert putting.runs == 2
    # Consumers from before the condition stay, and none come after it, on either node.
    assert None not in held_by(stores, claim)
    for store in stores:
        with pytest.raises(ConditionedError):
            store.write(allocations.write_request, ClaimRequest([second_claim]))
    assert held_by(stores, second_claim) == [None, None]


def held_by(stores, claim):
    """Return the allocations of a consumer, as each node knows them."""
    return [store.read(load_consumer, claim.consumer_uuid) for store in stores]


@pytest.fixture
def consuming(stores):
    """Two devices of a host with 8 cores, each unit of which consumes a core."""
    store, _ = stores
    store.write(standard_names.sync_standard_names)
    host = make(store, "host")
    store.write(providers.write_inventories, host.uuid, {"VCPU": Inventory(CORES)})
    devices = [make(store, f"device {number}", host.uuid).uuid for number in range(2)]
    for device in devices:
        stock = {"VGPU": Inventory(100, consumes=[Consumes(host.uuid, "VCPU", 1)])}
        store.write(providers.write_inventories, device, stock)
    return devices


def claim_of(device, units):
    """A claim of a new consumer on a device."""
    return ConsumerClaim(str(uuid.uuid4()), {device: {"VGPU": units}}, "project", "user", None)


def units_claimed(store):
    """All units that consumers hold."""
    with store.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT SUM(used) FROM allocations").scalar() or 0)


@pytest.mark.parametrize("lags", [False, True])
def test_claim_respects_capacity_consumed_on_another_node(stores, consuming, lag, lags):
    """No row of the one claim is a row of the other."""
    first_store, second_store = stores

    def claim_there():
        if lags:
            lag()
        second_store.write(
            allocations.write_request, ClaimRequest([claim_of(consuming[1], CORES - 1)])
        )

    claiming = Paused(allocations.write_request, claim_there)
    with pytest.raises(CapacityExceededError):
        first_store.write(claiming, ClaimRequest([claim_of(consuming[0], 2)]))
    assert units_claimed(first_store) == CORES - 1


def test_two_nodes_written_to_at_once_do_not_overbook_consumed_capacity(stores, consuming):
    """As in a failover, when sessions on the former node live on: both claim all cores, and one gets them."""

    def claim_all(store, device, barrier):
        claim = claim_of(device, CORES)
        barrier.wait()
        while True:
            try:
                store.replace_allocations([claim])
            except CapacityExceededError:
                return None
            except ConcurrentChangeError:
                continue
            return claim.consumer_uuid

    with ThreadPoolExecutor(len(stores)) as pool:
        for _ in range(ROUNDS):
            barriers = [threading.Barrier(len(stores))] * len(stores)
            winners = list(pool.map(claim_all, stores, consuming, barriers))
            assert [units_claimed(store) for store in stores] == [CORES, CORES]
            (winner,) = (consumer for consumer in winners if consumer is not None)
            stores[0].delete_allocations(winner)


@pytest.fixture
def lag(stores):
    """Keeps the first node busy with what the second one committed, so that it lags behind.

    Without that, a lock held there is found in time by what comes from the other node; locks
    alone would look as if they held on both.
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


def test_two_moves_on_two_nodes_make_no_loop_even_if_one_node_lags(stores, lag):
    first_store, second_store = stores
    root = make(first_store, "root")
    left, right = make(first_store, "left", root.uuid), make(first_store, "right", root.uuid)
    under_left, under_right = make(first_store, "a", left.uuid), make(first_store, "b", right.uuid)

    def move_right():
        lag()
        second_store.write(
            providers.update,
            right.uuid,
            name="right",
            parent=under_left.uuid,
            may_reparent=True,
        )

    move = Paused(providers.update, move_right)
    with pytest.raises(InvalidParentError):
        first_store.write(move, left.uuid, name="left", parent=under_right.uuid, may_reparent=True)


LOST_RACES = {
    "aggregates of a provider": (
        ProviderNotFoundError,
        lambda uuid: (providers.replace_aggregates, (uuid, [NOWHERE], None)),
        lambda uuid: (providers.delete, (uuid,)),
    ),
    "inventory of a provider": (
        ProviderNotFoundError,
        lambda uuid: (providers.write_inventories, (uuid, {"CUSTOM_GOLD": Inventory(8)})),
        lambda uuid: (providers.delete, (uuid,)),
    ),
    "inventory of a class": (
        ResourceClassNotFoundError,
        lambda uuid: (providers.write_inventories, (uuid, {"CUSTOM_GOLD": Inventory(8)})),
        lambda uuid: (resource_classes.delete, ("CUSTOM_GOLD",)),
    ),
}
"""By what is written: the error, the write, and what the other node does meanwhile."""


@pytest.mark.parametrize("lags", [False, True])
@pytest.mark.parametrize("written", LOST_RACES)
def test_write_that_another_node_deletes_leaves_nothing(stores, lag, written, lags):
    first_store, second_store = stores
    error, write_of, deletion_of = LOST_RACES[written]
    uuid = make(first_store, "host").uuid
    first_store.write(resource_classes.create, "CUSTOM_GOLD")
    write, arguments = write_of(uuid)
    deletion, deleted = deletion_of(uuid)

    def delete():
        if lags:
            lag()
        second_store.write(deletion, *deleted)

    with pytest.raises(error):
        first_store.write(Paused(write, delete), *arguments)
