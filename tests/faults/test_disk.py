# SPDX-License-Identifier: Apache-2.0
"""The disk is full, or nothing may be written: a clear refusal, and on it goes afterwards."""

import tempfile
import uuid
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests import databases
from tests.databases import EACH_SERVER, new_server_of
from tests.faults.harness.bodies import assert_unavailable
from tests.faults.harness.disks import fill, small_disk
from tests.faults.harness.service import body_of, client_of, running
from tests.servers import eventually

ROOM = 4_000_000
ROOM_OF_A_SERVER = 400_000_000


@pytest.fixture(params=EACH_SERVER)
def small_server(request, mounts, monkeypatch):
    """The URL of a database, and the disk that all files of its server are on."""
    # Names of Unix sockets are short, and servers run as another user.
    with (
        tempfile.TemporaryDirectory() as folder,
        small_disk(Path(folder, "small"), ROOM_OF_A_SERVER) as disk,
    ):
        Path(folder).chmod(0o755)
        monkeypatch.setattr(databases, "_memory", lambda: disk)
        server = new_server_of(request.param)
        try:
            # MariaDB drops no database once its own tables had no room; all goes with the server.
            server.drop = "SELECT 1"
            with server.database(disk) as new_database:
                yield new_database, disk
        finally:
            server.stop()


def create_until_refused(client, promised):
    """Fill the free pages of the database's files, and return the refusal after that."""
    while (answer := create(client)).status_code == 200:
        promised.add(answer.json()["name"])
    assert_unavailable(answer)
    assert "full" in answer.text
    assert names(client) == promised


def create(client):
    uuid_ = str(uuid.uuid4())
    return client.post("/resource_providers", json={"name": uuid_, "uuid": uuid_})


def names(client):
    rows = body_of(client, "/resource_providers")["resource_providers"]
    return {provider["name"] for provider in rows}


def created_again(client):
    """Create providers until that succeeds; return its name."""
    answer = eventually(lambda: (created := create(client)).status_code == 200 and created)
    return answer.json()["name"]


def require_only_writes_refused(database, folder, disk):
    """Fill the disk of a database: writes are refused until there is room."""
    with running(database, folder, workers=2) as service, client_of(service.url) as client:
        promised = {create(client).json()["name"] for _ in range(5)}
        filler = fill(disk)
        create_until_refused(client, promised)
        filler.unlink()
        promised.add(created_again(client))
        assert names(client) == promised


@pytest.mark.slow
@pytest.mark.usefixtures("mounts")
def test_full_disk_refuses_only_writes_until_space_is_freed(tmp_path):
    with small_disk(tmp_path / "small", ROOM) as disk:
        require_only_writes_refused(f"sqlite:///{disk / 'placement.db'}", tmp_path, disk)


@pytest.mark.slow
def test_full_server_disk_refuses_only_writes_until_space_is_freed(small_server, tmp_path):
    require_only_writes_refused(small_server[0], tmp_path, small_server[1])


def test_read_only_database_refuses_only_writes(own_server, tmp_path):
    with own_server.database(tmp_path) as new_database:
        database = with_plain_user(own_server, new_database)
        with running(database, tmp_path, workers=2) as service, client_of(service.url) as client:
            promised = {create(client).json()["name"] for _ in range(5)}
            set_read_only(own_server, new_database, "on")
            assert_unavailable(create(client))
            assert names(client) == promised
            set_read_only(own_server, new_database, "off")
            promised.add(created_again(client))
            assert names(client) == promised


def administer(server, *statements):
    engine = sa.create_engine(server.url(server.first_database), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def with_plain_user(server, database):
    """On MariaDB an account that read_only binds, which it does not for root."""
    if server.user == "postgres":
        return database
    url = make_url(database)
    administer(
        server,
        "CREATE USER plain@localhost",
        f"GRANT ALL ON {url.database}.* TO plain@localhost",
    )
    return url.set(username="plain").render_as_string(hide_password=False)


def set_read_only(server, database, value):
    if server.user != "postgres":
        administer(server, f"SET GLOBAL read_only = {value}")
        return
    name = make_url(database).database
    administer(
        server,
        f"ALTER DATABASE {name} SET default_transaction_read_only = {value}",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
    )
