# SPDX-License-Identifier: Apache-2.0
"""Waits for a database end, whether it falls silent or another client holds a lock."""

import contextlib
import logging
import os
import socket
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from tests.bodies import add_hosts, claim_of
from tests.databases import new_server_of, server_of
from tests.faults.conftest import EACH_SERVER
from tests.faults.harness.bodies import assert_tells_nothing, assert_unavailable
from tests.lock_waits import LOCK, lock, session_of, waiters
from tests.ports import free_port
from tests.proxy import Proxy
from tests.servers import TREECLAIM, eventually, service_environment
from tests.service import client_of, fresh_database_on, schema_on, start_on
from treeclaim.model.errors import StoreUnavailableError
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.engine import REFUSED, open_autocommit
from treeclaim.store.database.failures import __name__ as outages_log
from treeclaim.store.database.timeouts import SILENCE_MARGIN, Timeouts

pytestmark = pytest.mark.slow

SHORT = Timeouts(connect=2, lock=1, statement=2, load=20, write=2, idle=2, tcp=2)
PATIENT = Timeouts(lock=60, statement=60, idle=60)
SLACK = 5
"""The factor by which a wait may exceed its limit on a busy machine."""


def options_of(waits):
    """The options of the service that set these limits."""
    names = ("connect", "lock", "statement", "load", "write", "idle", "tcp")
    options = {f"treeclaim.database_{name}_timeout": getattr(waits, name) for name in names}
    # As many as the bundled server has: half of them may be writes that wait.
    return options | {"treeclaim.server_threads": 32}


@dataclass(frozen=True)
class Place:
    """A service in this process, its database, and a proxy between them."""

    database: str
    through: str
    proxy: Proxy
    application: object
    hosts: list

    def client(self):
        return client_of(self.application)

    def claim(self, *hosts, project="project"):
        amounts = {host: {"resources": {"VCPU": 1}} for host in hosts}
        body = claim_of(amounts, project_id=project, user_id="user")
        with self.client() as client:
            return client.put(f"/allocations/{uuid.uuid4()}", json=body)

    def get(self, path):
        with self.client() as client:
            return client.get(path)

    @contextlib.contextmanager
    def lock_host(self, host):
        """Lock the row of a host; yield the connection and a function that returns the sessions that wait for it."""
        engine = sa.create_engine(self.database, poolclass=sa.NullPool)
        with engine.connect() as holder:
            lock(holder, host)
            yield holder, partial(waiters, engine, session_of(holder))


@contextlib.contextmanager
def place_on(server, folder, waits):
    """A service with two hosts on a new database of a server."""
    proxy = Proxy(server.port)
    with server.filled(schema_on, folder) as database:
        through = proxy.url(database)
        with start_on(through, folder, **options_of(waits)) as application:
            hosts = [str(uuid.uuid4()) for _ in range(2)]
            with client_of(application) as client:
                add_hosts(client, *hosts, VCPU=1000)
            yield Place(database, through, proxy, application, hosts)
    proxy.close()


@pytest.fixture(params=EACH_SERVER, scope="module")
def place(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("waits")
    with place_on(server_of(request.param), folder, SHORT) as new_place:
        yield new_place


@pytest.fixture(params=EACH_SERVER)
def store(request, tmp_path):
    """A store with short limits."""
    with fresh_database_on(request.param, tmp_path) as database:
        new_store = Store(DatabaseSettings(database, timeouts=SHORT))
        yield new_store
        new_store.close()


def seconds_of(action):
    """Return the result of an action, and how long it took."""
    began = time.monotonic()
    return action(), time.monotonic() - began


def test_silent_database_gives_503_in_time(place, caplog):
    assert place.claim(place.hosts[0]).status_code == 204
    assert place.get("/allocation_candidates?resources=VCPU:1").status_code == 200
    caplog.set_level(logging.WARNING, logger=outages_log)
    place.proxy.fall_silent()
    try:
        with ThreadPoolExecutor() as pool:
            paths = ["/allocation_candidates?resources=VCPU:1", "/resource_providers"] * 2
            waiting = [
                pool.submit(seconds_of, lambda path=path: place.get(path)) for path in paths
            ]
            claims = [
                pool.submit(seconds_of, lambda host=host: place.claim(host))
                for host in place.hosts
            ]
            assert place.get("/").status_code == 200
            assert not any(claim.done() for claim in waiting + claims)
            for request in waiting + claims:
                answer, seconds = request.result()
                assert_unavailable(answer, place.through)
                assert seconds < SLACK * (SHORT.silence + SHORT.connect)
        # Without its connections, it refuses as quickly as a server can be reached.
        answer, seconds = seconds_of(lambda: place.claim(place.hosts[0]))
        assert_unavailable(answer, place.through)
        assert seconds < SLACK * SHORT.connect + SHORT.silence
    finally:
        place.proxy.speak_again()
    eventually(lambda: place.claim(place.hosts[0]).status_code == 204)
    assert place.get("/allocation_candidates?resources=VCPU:1").status_code == 200
    lines = [line.getMessage() for line in caplog.records if line.name == outages_log]
    # On a busy machine the attempts may take too long, which is another failure.
    began = [line for line in lines if line.startswith("The database failed")]
    silence = [line for line in began if "does not answer" in line]
    assert len(silence) == 1, lines
    assert silence == lines[:1]
    assert any("answers again" in line for line in lines[1:]), lines


def test_external_lock_gives_503_while_reads_continue(place):
    with place.lock_host(place.hosts[0]) as (_, waiting):
        with ThreadPoolExecutor() as pool:
            claims = [
                pool.submit(seconds_of, lambda: place.claim(place.hosts[0])) for _ in range(6)
            ]
            assert place.get("/").status_code == 200
            assert place.get("/allocation_candidates?resources=VCPU:1").status_code == 200
            assert place.get(f"/resource_providers/{place.hosts[0]}/usages").status_code == 200
            assert place.claim(place.hosts[1]).status_code == 204
            for claim in claims:
                answer, seconds = claim.result()
                assert_unavailable(answer, place.through)
                assert seconds < SLACK * (SHORT.write + SHORT.statement)
        # No abandoned transaction keeps waiting in the database with its locks.
        eventually(lambda: not waiting())
        deletion = place.client().delete(f"/resource_providers/{place.hosts[0]}")
        assert_unavailable(deletion, place.through)
    assert place.claim(place.hosts[0]).status_code == 204


@pytest.fixture(params=EACH_SERVER, scope="module")
def patient_place(request, tmp_path_factory):
    with place_on(
        server_of(request.param), tmp_path_factory.mktemp("patient"), PATIENT
    ) as new_place:
        yield new_place


def test_first_claim_of_a_project_does_not_block_other_claims(patient_place):
    place, project = patient_place, str(uuid.uuid4())
    with ThreadPoolExecutor() as pool:
        with place.lock_host(place.hosts[0]) as (_, waiting):
            first = pool.submit(place.claim, place.hosts[0], project=project)
            eventually(waiting)
            assert place.claim(place.hosts[1], project=project).status_code == 204
            assert not first.done()
        assert first.result().status_code == 204


def test_deadlocked_claim_is_retried(patient_place):
    place = patient_place
    with ThreadPoolExecutor() as pool:
        # The claim has the first host and waits for the second; then the holder wants the first.
        with place.lock_host(place.hosts[1]) as (holder, waiting):
            if holder.dialect.name == "postgresql":
                # Only the other one looks for deadlocks, so it is the victim.
                holder.exec_driver_sql("SET deadlock_timeout = '1h'")
            else:
                # The one that changed less is the victim.
                for _ in range(50):
                    holder.exec_driver_sql("INSERT INTO projects (external_id) VALUES (uuid())")
            claim = pool.submit(place.claim, *place.hosts)
            eventually(waiting)
            lock(holder, place.hosts[0])
        assert claim.result().status_code == 204


def test_claim_outlasts_the_lock_wait_timeout_of_the_server(patient_place):
    place = patient_place
    with ThreadPoolExecutor() as pool:
        with place.lock_host(place.hosts[0]) as (holder, waiting):
            if holder.dialect.name == "postgresql":
                pytest.skip("PostgreSQL lets everybody wait without end")
            limit = holder.exec_driver_sql("SELECT @@global.innodb_lock_wait_timeout").scalar()
            assert limit < PATIENT.lock
            claim = pool.submit(place.claim, place.hosts[0])
            eventually(lambda: waiting(limit))
            assert not claim.done()
        assert claim.result().status_code == 204


def test_stalled_transaction_releases_its_locks(place):
    frozen, thawed = threading.Event(), threading.Event()
    stuck = Store(DatabaseSettings(place.database, timeouts=SHORT), attempts=1)

    def stand_still(transaction):
        transaction.execute(LOCK.text, uuid=place.hosts[0])
        frozen.set()
        # Longer than all waits below, so this timeout cannot be what ends them.
        thawed.wait(600)
        transaction.execute(LOCK.text, uuid=place.hosts[0])

    with ThreadPoolExecutor() as pool:
        work = pool.submit(stuck.write, stand_still)
        try:
            assert frozen.wait(60)
            eventually(lambda: place.claim(place.hosts[0]).status_code == 204)
        finally:
            thawed.set()
        with pytest.raises(StoreUnavailableError):
            work.result()
    stuck.close()


def line_of(connection):
    """The socket of a connection of a driver."""
    sock = getattr(connection, "_sock", None)
    number = connection.pgconn.socket if sock is None else sock.fileno()
    return socket.socket(fileno=os.dup(number))


def test_every_connection_detects_a_lost_server_machine(store):
    """Also an idle connection, and one with a statement in transit: such a machine sends no RST."""
    with (
        store.engine.connect() as first,
        store._group_engine.connect() as second,
        contextlib.closing(open_autocommit(store.engine)) as third,
    ):
        pooled = [session.connection.dbapi_connection for session in (first, second)]
        for connection in (*pooled, third):
            with line_of(connection) as line:
                idle_seconds, probe_count, probe_interval, user_timeout = (
                    line.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
                    for name in (
                        "TCP_KEEPIDLE",
                        "TCP_KEEPCNT",
                        "TCP_KEEPINTVL",
                        "TCP_USER_TIMEOUT",
                    )
                )
                assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert idle_seconds + probe_count * probe_interval <= 2 * SHORT.tcp
            assert user_timeout == 1000 * SHORT.tcp


def sleep_of(engine, seconds):
    name = "pg_sleep" if engine.dialect.name == "postgresql" else "sleep"
    return f"SELECT {name}({seconds})"


def test_request_statement_times_out_and_full_read_does_not(store):
    slow = sleep_of(store.engine, SHORT.silence + 2)

    def patiently(transaction):
        transaction.extend_timeouts()
        transaction.scalar(slow)

    for _ in range(2):
        with pytest.raises(StoreUnavailableError) as raised:
            store.read(lambda transaction: transaction.scalar(slow))
        assert_tells_nothing(str(raised.value), store.engine.url)
        assert raised.value.cause
        # The limit of one transaction is not that of the next one on the same connection.
        store.read(patiently)


def test_timed_out_write_sends_no_further_statement(store):
    begun_statements = []

    def slowly(transaction):
        for number in range(10 * SHORT.write):
            begun_statements.append(number)
            transaction.scalar(sleep_of(store.engine, 1))

    with pytest.raises(StoreUnavailableError):
        store.write(slowly)
    assert 1 < len(begun_statements) <= SHORT.write + 2


@pytest.mark.usefixtures("postgresql")
def test_commit_without_a_standby_is_not_acknowledged_on_timeout(tmp_path):
    """PostgreSQL ends such a wait with success when a statement is cancelled; ours must not be."""
    primary = new_server_of("postgresql")
    try:
        with place_on(primary, tmp_path, SHORT) as place:
            primary._administer("ALTER SYSTEM SET synchronous_standby_names = '*'")
            primary._administer("SELECT pg_reload_conf()")
            try:
                eventually(lambda: is_waiting_for_a_standby(place.database))
                answer, seconds = seconds_of(lambda: place.claim(place.hosts[0]))
                assert_unavailable(answer, place.through)
                assert SHORT.statement + SILENCE_MARGIN <= seconds
            finally:
                # Otherwise DROP DATABASE would wait for a standby without end.
                primary._administer("ALTER SYSTEM RESET synchronous_standby_names")
                primary._administer("SELECT pg_reload_conf()")
            eventually(lambda: place.claim(place.hosts[0]).status_code == 204)
    finally:
        primary.stop()


def is_waiting_for_a_standby(database):
    engine = sa.create_engine(database)
    with engine.connect() as connection:
        result = connection.exec_driver_sql("SHOW synchronous_standby_names").scalar()
    engine.dispose()
    return result == "*"


SECRET = "mistaken"


def refused_at_start(folder, url):
    """Return the output of a service that ends because it may not use a database."""
    environment = service_environment(folder, url.render_as_string(hide_password=False))
    command = [*TREECLAIM, "serve", "--port", str(free_port())]
    # Unless it gives up at once, it tries for longer than this.
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert ended.returncode == 1
    assert REFUSED in ended.stderr
    assert "Traceback" not in ended.stderr
    assert SECRET not in ended.stderr + ended.stdout
    return ended.stderr


@pytest.mark.parametrize(
    "wrong", [{"username": "nobody", "password": SECRET}, {"database": "nowhere"}]
)
@pytest.mark.parametrize("kind", EACH_SERVER)
def test_refused_user_or_database_ends_the_service_at_once(kind, wrong, tmp_path):
    with server_of(kind).database(tmp_path) as database:
        url = make_url(database).set(**wrong)
        assert next(iter(wrong.values())) in refused_at_start(tmp_path, url)


@pytest.mark.usefixtures("postgresql")
def test_wrong_postgresql_password_ends_the_service_at_once(tmp_path):
    new_server = new_server_of("postgresql")
    try:
        new_server._administer("CREATE ROLE treeclaim LOGIN PASSWORD 'right'")
        rules = new_server.folder / "data" / "pg_hba.conf"
        rules.write_text("host all treeclaim 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        new_server._administer("SELECT pg_reload_conf()")
        url = make_url(new_server.url("postgres")).set(username="treeclaim", password=SECRET)
        assert "password authentication failed" in refused_at_start(tmp_path, url)
    finally:
        new_server.stop()
