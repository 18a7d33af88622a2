# SPDX-License-Identifier: Apache-2.0
"""Tables of old databases on MariaDB, in the character set of the server at their creation."""

from contextlib import contextmanager

import httpx
import pytest

from tests import peer
from tests.databases import server_of
from tests.service import HEADERS, client_of, schema_on, start_on
from tests.store.takeover.test_check import execute
from treeclaim.store import DatabaseSettings
from treeclaim.store.takeover.check import check
from treeclaim.store.takeover.findings import Level

NAMES = {
    "11111111-0000-4000-8000-000000000001": "h\u00f4te \u00fc",
    # In latin1, these are the bytes of another name in UTF-8.
    "11111111-0000-4000-8000-000000000002": "A\u00c3\u00a9",
}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["latin1", "utf8mb3", "utf8mb4"])
def tables(mariadb, peer, request, tmp_path_factory):
    """The URL of a database that Placement created and filled, and the character set of its tables."""
    folder = tmp_path_factory.mktemp("tables")
    with server_of("mariadb").database(folder) as url:
        execute(url, f"ALTER DATABASE CHARACTER SET {request.param}")
        with placement_on(url, folder) as client:
            for uuid, name in NAMES.items():
                body = {"uuid": uuid, "name": name}
                client.post("/resource_providers", json=body).raise_for_status()
            assert names_in(client.get("/resource_providers")) == NAMES
        yield url, request.param


@contextmanager
def placement_on(url, folder):
    """Yield a client of Placement on a database."""
    with (
        peer.openstack_placement_on(url, folder) as (address, _),
        httpx.Client(base_url=address, headers=HEADERS, timeout=60) as client,
    ):
        yield client


def names_in(answer):
    """Return the names of listed providers by UUID."""
    assert answer.status_code == 200, answer.text
    return {
        resource_provider["uuid"]: resource_provider["name"]
        for resource_provider in answer.json()["resource_providers"]
    }


def test_names_beyond_ascii_equal_those_of_placement(tables, tmp_path):
    url, _ = tables
    schema_on(url)
    later = "11111111-0000-4000-8000-000000000003"
    with start_on(url, tmp_path) as application:
        client = client_of(application)
        assert names_in(client.get("/resource_providers")) == NAMES
        query = {"name": "A\u00c3\u00a9"}
        assert list(names_in(client.get("/resource_providers", params=query)).values()) == [
            "A\u00c3\u00a9"
        ]
        body = {"uuid": later, "name": "\u00e9t\u00e9"}
        assert client.post("/resource_providers", json=body).is_success
    all_names = NAMES | {later: "\u00e9t\u00e9"}
    with start_on(url, tmp_path) as application:
        assert names_in(client_of(application).get("/resource_providers")) == all_names
    with placement_on(url, tmp_path) as client:
        assert names_in(client.get("/resource_providers")) == all_names


def test_database_check_names_character_set_and_loads_inventory(tables):
    url, charset = tables
    findings = {finding.subject: finding for finding in check(DatabaseSettings(url))}
    assert charset in findings["character set"].text
    expected = Level.WARNING if charset == "latin1" else Level.OK
    assert findings["character set"].level == expected
    assert findings["inventory"].level == Level.OK
    # No later test uses the tables.
    execute(
        url,
        "ALTER TABLE resource_providers MODIFY created_at VARCHAR(20)",
        "UPDATE resource_providers SET created_at = 'yesterday', updated_at = NULL",
    )
    findings = {finding.subject: finding for finding in check(DatabaseSettings(url))}
    assert findings["inventory"].level == Level.ERROR
