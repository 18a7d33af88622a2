# SPDX-License-Identifier: Apache-2.0
"""What may still hold a session at the server counts against the pool."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from tests.databases import EACH_SERVER, empty_database, new_server_of
from tests.servers import eventually
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.connecting import sessions as module
from treeclaim.store.database.connecting.connections import connected
from treeclaim.store.database.connecting.engine import make_engine
from treeclaim.store.database.connecting.sessions import Sessions, sessions_of
from treeclaim.store.database.timeouts import Timeouts
from treeclaim.store.operations.catalogue import traits
from treeclaim.store.schema import revisions as schema

SIZE, OVERFLOW = 3, 6
BESIDE = 1
"""The connection by which a store asks whether there is news."""


def pytest_generate_tests(metafunc):
    """Run on each kind of server that is wanted; SQLite has no sessions."""
    if "server_kind" in metafunc.fixturenames:
        metafunc.parametrize("server_kind", EACH_SERVER)


@pytest.fixture
def primary(postgresql):
    """A PostgreSQL of this test alone."""
    server = new_server_of("postgresql")
    yield server
    server.stop()


@contextmanager
def store_on(url):
    """A store with a small pool, and with short waits."""
    waits = Timeouts(statement=1, lock=1, write=2)
    settings = DatabaseSettings(
        url, max_pool_size=SIZE, max_overflow=OVERFLOW, pool_timeout=1, timeouts=waits
    )
    engine = sa.create_engine(url)
    schema.sync(engine)
    engine.dispose()
    store = Store(settings)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def standby_away(server):
    """In this block the server waits at each commit for a standby that does not exist."""

    def wait_for(name):
        server._administer(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
        server._administer("SELECT pg_reload_conf()")

    wait_for("nobody")
    try:
        yield
    finally:
        wait_for("")


def sessions_at(server, name):
    """How many sessions the server has in a database of a name."""
    engine = sa.create_engine(server.url(server.first_database), poolclass=sa.NullPool)
    counting = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
    with engine.connect() as connection:
        return connection.exec_driver_sql(counting).scalar()


@pytest.mark.slow
def test_commits_that_were_given_up_keep_their_places_and_reads_have_others(primary, tmp_path):
    with primary.database(tmp_path) as url, store_on(url) as store:
        name = sa.engine.make_url(url).database
        number = iter(range(1_000_000))
        lock = threading.Lock()

        def write():
            with lock:
                new = f"CUSTOM_{next(number)}"
            try:
                store.write(traits.ensure, new)
            except StoreUnavailableError:
                return False
            return True

        assert write()
        with standby_away(primary), ThreadPoolExecutor(16) as clients:
            eventually(lambda: not write(), "commits wait for the standby")
            for _ in range(4):
                attempts = [clients.submit(write) for _ in range(32)]
                assert not any(attempt.result() for attempt in attempts)
                assert sessions_at(primary, name) <= SIZE + OVERFLOW + BESIDE
                reads = [clients.submit(store.read, traits.traits_named, ["A"]) for _ in range(16)]
                assert [read.result() for read in reads] == [{}] * 16
            assert sessions_of(store.engine).abandoned == 2 * (SIZE + OVERFLOW) // 3
        eventually(write, "the server lets go, and the same store writes again")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_place_is_free_when_the_server_has_no_such_session(
    server_kind, is_there, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    with empty_database(server_kind, tmp_path) as url:
        engine = make_engine(DatabaseSettings(url))
        other = sa.create_engine(engine.url, poolclass=sa.NullPool)
        number = {"postgresql": "pg_backend_pid()", "mysql": "connection_id()"}
        with other.connect() as connection:
            pid = connection.exec_driver_sql(f"SELECT {number[engine.dialect.name]}").scalar()
            sessions = sessions_of(engine)
            sessions.note_begin(pid)
            sessions.note_end(pid, is_abandoned=True)
            if is_there:
                with connected(engine):
                    assert sessions.abandoned == 1

        def is_let_go():
            with connected(engine):
                return sessions.abandoned == 0

        eventually(is_let_go, "it has ended")
        engine.dispose()


def test_the_places_of_writes_come_back_with_the_sessions():
    places = Sessions("postgresql", 3)

    @contextmanager
    def given_up(pid):
        with places.writing(None):
            places.note_begin(pid)
            yield
            places.note_end(pid, is_abandoned=True)

    for pid in (1, 2):
        with given_up(pid):
            pass
    places._look_at = float("inf")
    with pytest.raises(sa.exc.TimeoutError), places.writing(None):
        pass
    # A number that comes again is that of another session.
    places.note_begin(1)
    places.note_end(1, is_abandoned=False)
    for _ in range(2):
        with places.writing(None):
            pass


def test_no_connection_is_made_beyond_the_pool_but_a_first_one():
    places = Sessions("postgresql", 2)
    for pid in (1, 2):
        places.note_begin(pid)
        places.note_end(pid, is_abandoned=True)
    places.require_place()
    places.note_begin(3)
    with pytest.raises(sa.exc.TimeoutError):
        places.require_place()
