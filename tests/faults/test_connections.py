# SPDX-License-Identifier: Apache-2.0
"""Connections to the database are cut while claims are under way."""

import contextlib
import time

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests.faults.harness.load import Load, build
from tests.faults.harness.proxy import Proxy
from tests.faults.harness.service import eventually, running

WRITES = 25
CUTS = 3

pytestmark = pytest.mark.slow


def cut_by_the_server(server, database):
    """End all sessions in a database; return how many."""
    name = make_url(database).database
    sessions, end = (
        (
            f"SELECT pid FROM pg_stat_activity WHERE datname = '{name}'",
            "SELECT pg_terminate_backend({})",
        )
        if server.user == "postgres"
        else (
            f"SELECT id FROM information_schema.processlist WHERE db = '{name}'",
            "KILL CONNECTION {}",
        )
    )
    engine = sa.create_engine(server.url(server.first_database), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        result = connection.exec_driver_sql(sessions).all()
        for (number,) in result:
            # It may have ended by itself.
            with contextlib.suppress(sa.exc.DBAPIError):
                connection.exec_driver_sql(end.format(number))
    engine.dispose()
    return len(result)


def test_terminated_sessions_lose_no_acknowledged_write(own_server, tmp_path):
    with own_server.database(tmp_path) as database, running(database, tmp_path) as service:
        load = Load([service.url], build(service.url))
        with load:
            for _ in range(CUTS):
                load.wait_for(WRITES)
                assert cut_by_the_server(own_server, database) > 0
            load.wait_for(WRITES)
        load.judge()


def test_cut_connections_lose_no_acknowledged_write(own_server, tmp_path):
    proxy = Proxy(own_server.port)
    with own_server.database(tmp_path) as database:
        through = make_url(database).set(port=proxy.port).render_as_string(hide_password=False)
        with running(through, tmp_path) as service:
            load = Load([service.url], build(service.url))
            with load:
                for _ in range(CUTS):
                    load.wait_for(WRITES)
                    assert proxy.cut() > 0
                load.wait_for(WRITES)
                proxy.refusing = True
                proxy.cut()
                before = load.answers["unavailable"]
                eventually(lambda: load.answers["unavailable"] > before)
                began = time.monotonic()
                proxy.refusing = False
                load.wait_for(WRITES)
                assert time.monotonic() - began < 30
            load.judge()
    proxy.close()
