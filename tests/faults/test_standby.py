# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL with a synchronous standby: the primary dies, the standby takes over."""

import pytest
import sqlalchemy as sa

from tests.databases import Postgresql, Standby
from tests.faults.harness.load import Load
from tests.faults.harness.service import running
from tests.servers import eventually

WRITES = 40


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


@pytest.mark.slow
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
