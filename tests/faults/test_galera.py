# SPDX-License-Identifier: Apache-2.0
"""MariaDB Galera, three nodes: one dies and comes back, and all are written to at once."""

import threading
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests.databases import GaleraNode, MissingServerError, free_port
from tests.faults.load import Load, build
from tests.faults.proxy import Proxy
from tests.faults.service import client_of, eventually, running

NODES = 3
WRITES = 40

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    ports = [free_port() for _ in range(NODES)]
    try:
        nodes = [GaleraNode(number, ports) for number in range(NODES)]
    except MissingServerError as missing:
        pytest.skip(str(missing))
    eventually(lambda: nodes[0].status("wsrep_cluster_size") == str(NODES))
    yield nodes
    for one in reversed(nodes):
        one.stop()


def at_node(database, node):
    return with_port(database, node.port)


def with_port(database, port):
    return make_url(database).set(port=port).render_as_string(hide_password=False)


def held(database):
    """All allocations, as one node has them."""
    engine = sa.create_engine(database)
    question = "SELECT consumer_id, resource_provider_id, used FROM allocations"
    with engine.connect() as connection:
        connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
        found = sorted(tuple(row) for row in connection.exec_driver_sql(question))
    engine.dispose()
    return found


def require_equal(cluster, database):
    first, *others = (held(at_node(database, one)) for one in cluster)
    assert all(one == first for one in others)


def test_claims_on_three_nodes_at_once_never_overbook_and_none_is_lost(cluster, tmp_path):
    with cluster[0].database(tmp_path) as database, ExitStack() as stack:
        services = [
            stack.enter_context(running(at_node(database, one), tmp_path, workers=2))
            for one in cluster
        ]
        urls = [one.url for one in services]
        load = Load(urls, build(urls[0]))
        with load:
            load.wait_for(3 * WRITES, seconds=90)
        for url in urls:
            load.judge(url)
        assert load.answers["refused"] > 0
        assert not load.doubts
        require_equal(cluster, database)


def test_what_one_node_acknowledged_is_seen_at_once_by_workers_of_another(cluster, tmp_path):
    with cluster[0].database(tmp_path) as database, ExitStack() as stack:
        services = [
            stack.enter_context(running(at_node(database, one), tmp_path, workers=1))
            for one in cluster
        ]
        world = build(services[0].url)
        provider = world.hosts[0]
        clients = [stack.enter_context(client_of(one.url)) for one in services]
        for turn in range(12):
            writer, *readers = clients[turn % NODES :] + clients[: turn % NODES]
            set_total(writer, provider, 10 + turn, generation=1 + turn)
            for one in readers:
                assert total_in_candidates(one, provider) == 10 + turn
                assert total_stored(one, provider) == 10 + turn


@pytest.mark.parametrize("question", ["candidates", "inventory"])
def test_a_worker_of_a_node_that_lags_waits_and_does_not_answer_from_the_past(
    cluster, tmp_path, question
):
    ask = {"candidates": total_in_candidates, "inventory": total_stored}[question]
    first, second, _ = cluster
    with first.database(tmp_path) as database, ExitStack() as stack:
        writer, reader = (
            stack.enter_context(running(at_node(database, one), tmp_path, workers=1))
            for one in (first, second)
        )
        provider = build(writer.url).hosts[0]
        writing = stack.enter_context(client_of(writer.url))
        reading = stack.enter_context(client_of(reader.url))
        ask(reading, provider)
        engine = sa.create_engine(at_node(database, second))
        with engine.connect() as connection:
            # From here on the node receives what others commit, but does not carry it out.
            connection.exec_driver_sql("FLUSH TABLES WITH READ LOCK")
            set_total(writing, provider, 77, generation=1)
            seen = []
            asking = threading.Thread(target=lambda: seen.append(ask(reading, provider)))
            asking.start()
            asking.join(timeout=1)
            assert not seen
            connection.exec_driver_sql("UNLOCK TABLES")
        asking.join(timeout=30)
        assert seen == [77]
        engine.dispose()


def total_stored(client, provider):
    return client.get(f"/resource_providers/{provider}/inventories/VCPU").json()["total"]


def set_total(client, provider, total, generation):
    path = f"/resource_providers/{provider}/inventories/VCPU"
    answer = client.put(path, json={"total": total, "resource_provider_generation": generation})
    assert answer.status_code == 200, answer.text


def total_in_candidates(client, provider):
    answer = client.get("/allocation_candidates?resources=VCPU:1").json()
    return answer["provider_summaries"][provider]["resources"]["VCPU"]["capacity"]


def test_a_killed_node_costs_nothing_that_was_promised_and_comes_back(cluster, tmp_path):
    first, second, third = cluster
    proxy = Proxy(first.port, second.port, third.port)
    with second.database(tmp_path) as database:
        with running(with_port(database, proxy.port), tmp_path) as service:
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
