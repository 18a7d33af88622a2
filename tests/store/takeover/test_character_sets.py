# SPDX-License-Identifier: Apache-2.0
"""Tables of an old MariaDB have the character set that the server had when they were made."""

import pytest
import sqlalchemy as sa

from tests.databases import server_of
from tests.service import client_of, schema_on, start_on
from treeclaim.store import DatabaseSettings
from treeclaim.store.schema.tables import placement
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

NAMES = {
    "11111111-0000-4000-8000-000000000001": "h\u00f4te \u00fc",
    # In latin1, these are the bytes of another name in UTF-8.
    "11111111-0000-4000-8000-000000000002": "A\u00c3\u00a9",
}


@pytest.fixture(params=["latin1", "utf8mb3", "utf8mb4"])
def tables(mariadb, request, tmp_path):
    """The URL of a database whose tables of Placement have a character set, and that character set."""
    with server_of("mariadb").database(tmp_path) as url:
        schema_on(url)
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql("SET foreign_key_checks = 0")
            for table in placement.sorted_tables:
                connection.exec_driver_sql(
                    f"ALTER TABLE {table.name} CONVERT TO CHARACTER SET {request.param}"
                )
        engine.dispose()
        yield url, request.param


def test_new_worker_answers_names_beyond_ascii(tables, tmp_path):
    url, _ = tables
    with start_on(url, tmp_path) as application:
        client = client_of(application)
        for uuid, name in NAMES.items():
            created = client.post("/resource_providers", json={"uuid": uuid, "name": name})
            assert created.is_success, created.text
    with start_on(url, tmp_path) as application:
        listed = client_of(application).get("/resource_providers").json()["resource_providers"]
        assert {provider["uuid"]: provider["name"] for provider in listed} == NAMES
        found = client_of(application).get("/resource_providers", params={"name": "A\u00c3\u00a9"})
        assert [provider["name"] for provider in found.json()["resource_providers"]] == [
            "A\u00c3\u00a9"
        ]


def test_database_check_names_character_set_and_loads_inventory(tables):
    url, charset = tables
    findings = {finding.subject: finding for finding in check(DatabaseSettings(url))}
    assert charset in findings["character set"].text
    expected = Level.WARNING if charset == "latin1" else Level.OK
    assert findings["character set"].level == expected
    assert findings["inventory"].level == Level.OK


def test_database_check_finds_inventory_that_cannot_be_loaded(tables):
    url, _ = tables
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO resource_providers (id, uuid, name, root_provider_id, created_at) "
            "VALUES (1, 'u', 'n', 1, '2020-01-01')"
        )
        connection.exec_driver_sql("ALTER TABLE resource_providers MODIFY created_at VARCHAR(20)")
        connection.exec_driver_sql("UPDATE resource_providers SET created_at = 'yesterday'")
    engine.dispose()
    findings = {finding.subject: finding for finding in check(DatabaseSettings(url))}
    assert findings["inventory"].level == Level.ERROR
