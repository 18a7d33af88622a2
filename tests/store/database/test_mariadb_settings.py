# SPDX-License-Identifier: Apache-2.0
"""Settings of MariaDB: its URLs, the lock of the schema, and TLS."""

from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa

from tests import authorities
from tests.databases import empty_database
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.engine import make_engine
from treeclaim.store.database.mariadb import make_connection_class
from treeclaim.store.database.systems import get_system
from treeclaim.store.schema import revisions as schema


@pytest.fixture
def url(mariadb, tmp_path):
    """The URL of an empty database."""
    with empty_database("mariadb", tmp_path) as empty_url:
        yield empty_url


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["mysql+pymysql", "mariadb+pymysql", "mysql", "mariadb"])
def test_each_mariadb_url_scheme_sets_isolation_level(url, scheme):
    engine = make_engine(DatabaseSettings(url.replace("mysql+pymysql", scheme)))
    query = sa.text("SELECT @@tx_isolation")
    # The server's own default is REPEATABLE READ.
    with get_system(engine).for_writing(engine).connect() as connection:
        assert connection.execute(query).scalar() == "READ-COMMITTED"
    engine.dispose()


def test_schema_locked_by_another_process_is_reported(url, monkeypatch):
    monkeypatch.setattr(schema, "_LOCK_WAIT", 0)
    engine = make_engine(DatabaseSettings(url))
    with engine.connect() as holder:
        name = "treeclaim schema " + sa.make_url(url).database
        assert holder.execute(sa.select(sa.func.get_lock(name, 0))).scalar() == 1
        with pytest.raises(StoreUnavailableError, match="Another process"):
            schema.sync(engine)
    engine.dispose()


THE_DRIVERS: Any = pymysql.connections.Connection
AUTHORITY = Path(authorities.__file__).with_name("authority.pem")
OPTIONS_OF_TLS = [
    {"ssl": {"ca": str(AUTHORITY)}},
    {"ssl_ca": str(AUTHORITY), "ssl_verify_identity": True},
    {"ssl_verify_cert": True},
    {"ssl": {"check_hostname": False, "verify_mode": "required"}},
]


def test_default_tls_context_is_loaded_once():
    first, second = (make_connection_class()(defer_connect=True) for _ in range(2))
    assert first.ctx is second.ctx


@pytest.mark.parametrize("options", [{}, *OPTIONS_OF_TLS, {"ssl_disabled": True}])
def test_tls_settings_equal_those_of_the_driver(options):
    ours, drivers = (
        make_connection(defer_connect=True, **options)
        for make_connection in (make_connection_class(), THE_DRIVERS)
    )
    assert (ours.ssl, ours._ssl_required) == (drivers.ssl, drivers._ssl_required)
    if ours.ssl:
        assert ours.ctx.verify_mode == drivers.ctx.verify_mode
        assert ours.ctx.check_hostname == drivers.ctx.check_hostname
        assert ours.ctx.get_ca_certs() == drivers.ctx.get_ca_certs()
