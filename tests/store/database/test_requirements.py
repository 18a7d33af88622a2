# SPDX-License-Identifier: Apache-2.0
"""An unsupported server is refused with one sentence, at the start and by `db check`."""

import pytest
import sqlalchemy as sa

from tests.service import fresh_database_on, start_on
from treeclaim.cli.main import main
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings
from treeclaim.store.database.engine import make_engine
from treeclaim.store.database.requirements import refuse_version
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

COCKROACH = "CockroachDB CCL v26.3.0 (x86_64-pc-linux-gnu, built 2026/01/01)"
REFUSAL = (
    "The database server is CockroachDB CCL v26.3.0, which is not supported; Treeclaim supports "
    "PostgreSQL, MariaDB, MySQL and SQLite"
)

SUPPORTED = [
    (
        "postgresql",
        "PostgreSQL 15.6 (Debian 15.6-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
    ),
    ("postgresql", "PostgreSQL 18beta1 on x86_64-pc-linux-gnu"),
    ("mysql", "10.11.6-MariaDB-0+deb12u1-log"),
    ("mysql", "5.5.5-10.6.18-MariaDB"),
    ("mysql", "8.0.36"),
    ("mysql", "8.0.36-0ubuntu0.22.04.1"),
    ("mysql", "8.0.35-27.1-log"),
]
OTHER_SERVERS = [
    ("postgresql", "PostgreSQL 15.2-YB-2025.1.0.0-b1 on x86_64-pc-linux-gnu"),
    ("postgresql", COCKROACH),
    ("mysql", "8.0.11-TiDB-v7.5.0"),
    ("mysql", "5.7.25-OceanBase-v4.2.1.0"),
]


@pytest.mark.parametrize(("kind", "version"), SUPPORTED)
def test_supported_server_is_accepted(kind, version):
    assert refuse_version(kind, version) is None


@pytest.mark.parametrize(("kind", "version"), OTHER_SERVERS)
def test_unsupported_server_is_refused(kind, version):
    assert "which is not supported" in refuse_version(kind, version)


@pytest.mark.slow
@pytest.mark.usefixtures("postgresql")
def test_unsupported_server_gives_one_sentence_at_start_and_in_check(tmp_path, capsys):
    with fresh_database_on("postgresql", tmp_path) as url:
        engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            name = sa.engine.make_url(url).database
            connection.exec_driver_sql("CREATE SCHEMA other")
            connection.exec_driver_sql(
                f"CREATE FUNCTION other.version() RETURNS text LANGUAGE sql AS $$ SELECT '{COCKROACH}' $$"
            )
            connection.exec_driver_sql(
                f"ALTER DATABASE {name} SET search_path = other, pg_catalog, public"
            )
        engine.dispose()
        with pytest.raises(StoreUnavailableError) as refused, start_on(url, tmp_path):
            pass
        assert str(refused.value) == REFUSAL
        assert main(["db", "sync", "--config-file", str(tmp_path / "placement.conf")]) == 1
        assert REFUSAL in capsys.readouterr().err
        assert ("server", Level.ERROR, REFUSAL) in [
            (finding.subject, finding.level, finding.text)
            for finding in check(DatabaseSettings(url))
        ]


@pytest.mark.parametrize("kind", ["mssql+pyodbc", "oracle", "another"])
def test_urls_of_other_kinds_are_refused_before_a_driver_is_looked_for(kind):
    with pytest.raises(sa.exc.ArgumentError, match="is not supported; use sqlite"):
        make_engine(DatabaseSettings(f"{kind}://user:secret@host/name"))
