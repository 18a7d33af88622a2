# SPDX-License-Identifier: Apache-2.0
"""Processes die and connections are cut at the worst moment; promises are kept, and the service comes back."""

import time

import pytest
import sqlalchemy as sa

from tests.databases import Postgresql, Standby
from tests.faults.harness.load import Load
from tests.faults.harness.service import body_of, client_of, running
from tests.proxy import Proxy
from tests.servers import eventually

WRITES = 25
LEAST_KILLS, MOST_KILLS = 2, 10
CUTS = 3

pytestmark = pytest.mark.slow


def test_killed_workers_leave_no_half_claim_and_are_replaced(database, tmp_path):
    with running(database, tmp_path) as service:
        with Load(service.url) as load:
            for kills in range(MOST_KILLS):
                load.wait_for(WRITES)
                # The killed worker may have been idle; only an interrupted claim is judged.
                if kills >= LEAST_KILLS and load.answers["lost"]:
                    break
                for worker in list(service.workers())[:2]:
                    worker.kill()
                service.await_workers(4)
            load.wait_for(WRITES)
        load.judge()
        for kind in ("lost", "placed"):
            assert load.answers[kind] > 0, load.answers


def test_killed_database_loses_nothing_and_workers_reconnect(own_server, tmp_path):
    with own_server.database(tmp_path) as database, running(database, tmp_path) as service:
        with Load(service.url) as load:
            load.wait_for(WRITES)
            own_server.kill()
            before = load.answers["unavailable"]
            eventually(lambda: load.answers["unavailable"] > before)
            own_server.start()
            load.wait_for(WRITES)
        load.judge()


def test_workers_killed_during_a_database_outage_are_replaced(own_server, tmp_path):
    with (
        own_server.database(tmp_path) as database,
        running(
            database, tmp_path, workers=2, OS_PLACEMENT_DATABASE__RETRY_INTERVAL="1"
        ) as service,
    ):
        before = service.workers()
        own_server.kill()
        for worker in before:
            worker.kill()
        eventually(lambda: not before & service.workers())
        own_server.start()
        service.await_workers(2, before)
        with client_of(service.url) as client:
            body_of(client, "/resource_providers")
        assert service.process.poll() is None


def test_cut_connections_lose_no_acknowledged_write(own_server, tmp_path):
    proxy = Proxy(own_server.port)
    with (
        own_server.database(tmp_path) as database,
        running(proxy.url(database), tmp_path) as service,
    ):
        with Load(service.url) as load:
            for _ in range(CUTS):
                load.wait_for(WRITES)
                assert proxy.cut() > 0
            load.wait_for(WRITES)
            proxy.is_refusing = True
            proxy.cut()
            before = load.answers["unavailable"]
            eventually(lambda: load.answers["unavailable"] > before)
            began = time.monotonic()
            proxy.is_refusing = False
            load.wait_for(WRITES)
            assert time.monotonic() - began < 30
        load.judge()
    proxy.close()


@pytest.fixture
def pair(postgresql):
    """A primary, and a standby without which nothing is committed."""
    primary = Postgresql()
    standby = Standby(primary)
    primary._administer("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary._administer("SELECT pg_reload_conf()")
    eventually(lambda: is_synchronous(primary))
    yield primary, standby
    standby.stop()
    primary.stop()


def is_synchronous(primary):
    engine = sa.create_engine(primary.url("postgres"))
    with engine.connect() as connection:
        states = connection.exec_driver_sql("SELECT sync_state FROM pg_stat_replication").all()
    engine.dispose()
    return [tuple(state) for state in states] == [("sync",)]


def test_promoted_standby_is_found_with_all_acknowledged_writes(pair, tmp_path):
    primary, standby = pair
    primary._administer("CREATE DATABASE placement")
    hosts = f"host=127.0.0.1:{primary.port}&host=127.0.0.1:{standby.port}"
    database = f"postgresql+psycopg://postgres@/placement?{hosts}&target_session_attrs=read-write"
    with running(database, tmp_path) as service:
        with Load(service.url) as load:
            load.wait_for(WRITES)
            before = service.workers()
            primary.kill()
            unavailable = load.answers["unavailable"]
            eventually(lambda: load.answers["unavailable"] > unavailable)
            standby.promote()
            load.wait_for(WRITES)
            # No process was replaced.
            assert service.workers() == before
        load.judge()
