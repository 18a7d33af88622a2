# SPDX-License-Identifier: Apache-2.0
"""The file of SQLite is private, and a long lock causes a 503."""

import os
import sqlite3
import stat
import time
import uuid

import pytest

from tests.service import HEADERS, client_of, schema_on, start_on
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.timeouts import SQLITE_LOCK_FACTOR
from treeclaim.store.operations.providers import providers

READABLE = 0o022


@pytest.fixture
def usual_umask():
    before = os.umask(READABLE)
    yield
    os.umask(before)


def modes_of(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.parametrize("form", ["sqlite:///{}", "sqlite:///file:{}?uri=true"])
def test_new_database_files_are_private_to_the_owner(tmp_path, usual_umask, form):
    url = form.format(tmp_path / "placement.db")
    schema_on(url)
    store = Store(DatabaseSettings(url))
    store.write(providers.create, uuid=str(uuid.uuid4()), name="host", parent_uuid=None)
    modes = modes_of(tmp_path)
    store.close()
    assert set(modes) == {"placement.db", "placement.db-wal", "placement.db-shm"}
    assert set(modes.values()) == {0o600}


def test_existing_database_keeps_its_permissions(tmp_path, usual_umask):
    path = tmp_path / "placement.db"
    path.touch(0o640)
    schema_on(f"sqlite:///{path}")
    assert modes_of(tmp_path)["placement.db"] == 0o640


@pytest.mark.slow
def test_blocked_writer_gets_503_while_reads_continue(tmp_path):
    url = f"sqlite:///{tmp_path / 'placement.db'}"
    schema_on(url)
    with start_on(url, tmp_path, **{"treeclaim.database_lock_timeout": 1}) as application:
        holder = sqlite3.connect(tmp_path / "placement.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with client_of(application, **HEADERS) as client:
            began = time.monotonic()
            refused = client.post("/resource_providers", json={"name": "host"})
            assert refused.status_code == 503
            assert SQLITE_LOCK_FACTOR <= time.monotonic() - began < 10 * SQLITE_LOCK_FACTOR
            assert int(refused.headers["retry-after"]) > 0
            assert client.get("/resource_providers").status_code == 200
            holder.execute("ROLLBACK")
            assert client.post("/resource_providers", json={"name": "host"}).status_code == 200
        holder.close()
