# SPDX-License-Identifier: Apache-2.0
"""Unusual settings of servers, databases and files do not change the responses of the service.

The shared servers of all tests already have unusual settings (`tests/databases.py`); this module adds further ones.
"""

import sqlite3
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from tests.api.resources.extension.clouds import EXTENDED
from tests.bodies import claim_of
from tests.databases import EACH_SERVER, server_of
from tests.resources import needs
from tests.service import client_of, make_application, schema_on, start_on
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.engine import make_engine
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

pytestmark = pytest.mark.slow

HOST = "11111111-0000-4000-8000-000000000001"
NODE = "11111111-0000-4000-8000-000000000002"
CONSUMER = "22222222-0000-4000-8000-000000000001"
NAME = "gastgeber \u00fc\u4e2d \\n '\"%s"
RATIOS = {"mariadb": 1.5}
"""Allocation ratios on databases with few digits in the column."""
LEAST_RATIO = 1.0000000000000002
"""Above 1: it needs all digits."""

UNUSUAL_VARIABLES = {
    "completion_type": "CHAIN",
    "foreign_key_checks": "0",
    "sql_auto_is_null": "1",
    "sql_quote_show_create": "0",
    "sql_safe_updates": "1",
    "sql_select_limit": "1",
    "unique_checks": "0",
}


@contextmanager
def sql_ascii(_folder):
    """A database with the encoding that initdb sets under LANG=C."""
    server = server_of("postgresql")
    server.create, usual = "CREATE DATABASE {name}", server.create
    try:
        with server.database(None) as url:
            yield url
    finally:
        server.create = usual


@contextmanager
def unusual_variables(_folder):
    """A database of a MariaDB with unusual session variables."""
    server = server_of("mariadb")
    with server.database(None) as url:
        engine = sa.create_engine(server.administered(), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for name, value in UNUSUAL_VARIABLES.items():
                connection.exec_driver_sql(f"SET GLOBAL {name} = {value}")
            try:
                yield url
            finally:
                for name in UNUSUAL_VARIABLES:
                    connection.exec_driver_sql(f"SET GLOBAL {name} = DEFAULT")
        engine.dispose()


@contextmanager
def narrow_protocol(_folder):
    """A URL with a character set that lacks most characters."""
    with server_of("mariadb").database(None) as url:
        yield url.replace("charset=utf8", "charset=latin1")


@contextmanager
def wide_file(folder):
    """A file in UTF-16 with another journal mode."""
    path = folder / "wide.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA encoding = 'UTF-16'")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("CREATE TABLE others (id INTEGER)")
    connection.close()
    yield f"sqlite:///{path}"


ODD = {
    "sqlite": (wide_file,),
    "postgresql": (sql_ascii,),
    "mariadb": (unusual_variables, narrow_protocol),
}


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        pytest.param(kind, make, marks=[needs(kind)] if kind != "sqlite" else [])
        for kind, makers in ODD.items()
        for make in makers
    ],
)
def test_unusual_database_settings_do_not_change_responses(kind, make, tmp_path):
    usual = client_of(make_application(tmp_path), **EXTENDED)
    ratio = RATIOS.get(kind, LEAST_RATIO)
    expected = answers(usual, ratio)
    assert {status for status, _ in expected} == {200, 204, 400, 409}
    with make(tmp_path) as url:
        schema_on(url)
        # The second call inspects the existing schema.
        schema_on(url)
        with start_on(url, tmp_path) as application:
            assert answers(client_of(application, **EXTENDED), ratio) == expected
        with start_on(url, tmp_path) as application:
            assert reads(client_of(application, **EXTENDED)) == reads(usual)
        assert worst(url) <= Level.WARNING


def worst(url):
    """Return the worst level of a check."""
    return max(finding.level for finding in check(DatabaseSettings(url)))


def answers(client, ratio):
    """Return the responses of a service to writes of all kinds, and to reads after them."""
    entries = [
        {
            "uuid": HOST,
            "name": NAME,
            "inventories": {
                "VCPU": {"total": 7, "allocation_ratio": ratio, "reserved": 1},
                "CUSTOM_X": {"total": 3},
            },
            "traits": ["CUSTOM_FAST"],
            "aggregates": [NODE],
        },
        {"uuid": NODE, "name": "node", "parent_provider_uuid": HOST},
    ]
    claim = claim_of({HOST: {"resources": {"VCPU": 2}}}, project_id=NAME, user_id="person")
    write_answers = [
        client.post("/treeclaim/providers", json={"create_names": True, "providers": entries}),
        client.put(f"/allocations/{CONSUMER}", json=claim),
        client.put(f"/allocations/{CONSUMER}", json=claim),
        client.put(f"/resource_providers/{NODE}", json={"name": NAME}),
        client.put(f"/resource_providers/{NODE}", json={"name": f"{NAME} 2"}),
        client.delete(f"/resource_providers/{HOST}"),
        client.put(f"/resource_providers/{NODE}", json={"name": "n" * 201}),
    ]
    return [(answer.status_code, body(answer)) for answer in write_answers] + reads(client)


def reads(client):
    """Return the responses of a service to reads."""
    paths = (
        "/resource_providers",
        f"/resource_providers/{HOST}/inventories",
        f"/resource_providers/{HOST}/traits",
        f"/resource_providers/{HOST}/aggregates",
        f"/allocations/{CONSUMER}",
        "/allocation_candidates?resources=VCPU:1",
        "/traits?name=startswith:CUSTOM",
    )
    answers = [client.get(path) for path in paths]
    answers.append(client.get("/usages", params={"project_id": NAME}))
    answers.append(client.get("/resource_providers", params={"name": NAME}))
    return [(answer.status_code, body(answer)) for answer in answers]


def body(answer):
    """Return the document of a response without generated values."""
    document = answer.json() if answer.content else None
    for error in (document or {}).get("errors", ()):
        error.pop("request_id")
    return document


@pytest.mark.parametrize(
    ("configured", "kept_modes"),
    [
        ("TRADITIONAL", {"TRADITIONAL", "STRICT_ALL_TABLES", "NO_ZERO_DATE"}),
        ("ANSI_QUOTES,NO_ZERO_DATE", {"STRICT_ALL_TABLES", "NO_ZERO_DATE"}),
        ("", {"STRICT_ALL_TABLES"}),
    ],
)
@pytest.mark.parametrize("kind", EACH_SERVER[1:])
def test_sql_modes_that_change_statements_are_dropped(kind, configured, kept_modes, tmp_path):
    with server_of(kind).database(tmp_path) as url:
        engine = make_engine(DatabaseSettings(url, mysql_sql_mode=configured))
        with engine.connect() as connection:
            modes = set(connection.exec_driver_sql("SELECT @@sql_mode").scalar().split(","))
        engine.dispose()
    assert kept_modes <= modes
    assert not modes & {"ANSI_QUOTES", "PIPES_AS_CONCAT", "NO_BACKSLASH_ESCAPES"}


@pytest.mark.parametrize("kind", EACH_SERVER[:1])
def test_url_encoding_cannot_make_the_driver_return_bytes(kind, tmp_path):
    with server_of(kind).database(tmp_path) as url:
        schema_on(f"{url}?client_encoding=SQL_ASCII")
        store = Store(DatabaseSettings(f"{url}?client_encoding=SQL_ASCII"))
        assert store.load_cursor()
        store.close()
