# SPDX-License-Identifier: Apache-2.0
"""The phases of claims over HTTP, in metrics and traces.

A test moves the clock of the phases; locks and transactions are real.
"""

import sqlite3
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.bodies import add_hosts, claim_of
from tests.lock_waits import await_waiter, session_of
from tests.servers import eventually
from tests.service import client_of, services_on_database
from treeclaim import metrics
from treeclaim.model.timing import COMMIT, HAND_OVER, LOCKS, STATEMENTS, TRANSACTION, WAIT
from treeclaim.store.database import driver, sqlite
from treeclaim.store.writes import groups as groups_module

PATIENT = 60.0
LONG = 100.0
"""Seconds by the clock of the phases, which no real phase takes."""

PHASES = [WAIT, LOCKS, STATEMENTS, COMMIT, HAND_OVER]
HOST = str(uuid.uuid4())


class Cloud:
    """A service with one host, and its metrics of phases."""

    def __init__(self, services, application):
        self.store = services.store
        self._application = application
        self.phases_by_thread = {}
        """By thread, the phases of its claim."""
        with client_of(application) as client:
            add_hosts(client, HOST, VCPU=100)
        # A separate transaction writes the names of new owners before their first claim.
        assert self.claim() == 204

    def claim(self):
        body = claim_of({HOST: {"resources": {"VCPU": 1}}}, project_id="project", user_id="user")
        with client_of(self._application) as client:
            return client.put(f"/allocations/{uuid.uuid4()}", json=body).status_code

    def note(self, name, seconds, _passed):
        self.phases_by_thread.setdefault(threading.get_ident(), {})[name] = seconds

    @contextmanager
    def locked(self):
        """Hold a lock that each claim on the host needs; yield a function that waits for a waiting claim."""
        engine = self.store.engine
        if engine.dialect.name == "sqlite":
            is_sent, send = threading.Event(), driver.send

            def begin(connection, ready):
                is_sent.set()
                send(connection, ready)

            holder = sqlite3.connect(engine.url.database, isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sqlite, "send", begin)
                yield lambda: is_sent.wait(PATIENT)
                holder.execute("COMMIT")
            holder.close()
            return
        with engine.connect() as holder:
            holder.exec_driver_sql("UPDATE resource_providers SET updated_at = NULL")
            session = session_of(holder)
            yield lambda: await_waiter(engine, session)
            holder.commit()


@pytest.fixture
def clock(monkeypatch):
    """The clock of the phases, which moves only when a test advances it."""

    class Clock:
        now = 1_000.0

        def passes(self, seconds):
            self.now += seconds

    new_clock = Clock()
    monkeypatch.setattr("treeclaim.model.timing.perf_counter", lambda: new_clock.now)
    return new_clock


@pytest.fixture
def cloud(database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(groups_module, "PATIENCE", PATIENT)
    # At most half of the threads run writes.
    threads = {"treeclaim.server_threads": 16}
    with services_on_database(database_url, tmp_path, **threads) as (services, application):
        new_cloud = Cloud(services, application)
        monkeypatch.setattr(metrics, "phase_listeners", [new_cloud.note])
        yield new_cloud


def read_samples():
    """Return the samples of the metrics of claims."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in (metrics.CLAIM_SECONDS, metrics.CLAIM_GROUPS)
        for family in metric.collect()
        for sample in family.samples
    }


def grown(before, name, *labels):
    return read_samples()[(f"treeclaim_{name}", *labels)] - before.get(
        (f"treeclaim_{name}", *labels), 0
    )


def test_lock_wait_appears_in_its_phase(cloud, clock):
    before = read_samples()
    with ThreadPoolExecutor(1) as pool, cloud.locked() as until_one_waits:
        claim = pool.submit(cloud.claim)
        assert until_one_waits()
        clock.passes(LONG)
    assert claim.result(PATIENT) == 204
    ((phases),) = cloud.phases_by_thread.values()
    assert phases == pytest.approx(dict.fromkeys(PHASES, 0.0) | {LOCKS: LONG})
    assert grown(before, "claim_seconds_sum", LOCKS) == pytest.approx(LONG)


def test_grouped_claims_wait_and_share_a_transaction(cloud, clock):
    before = read_samples()
    with ThreadPoolExecutor(4) as pool:
        with cloud.locked() as until_one_waits:
            claims = [pool.submit(cloud.claim)]
            assert until_one_waits()
            claims += [pool.submit(cloud.claim) for _ in range(3)]
            eventually(lambda: len(cloud.store._groups._waiting_members) == 3, "three wait")
            clock.passes(LONG)
        assert [claim.result(PATIENT) for claim in claims] == [204] * 4
    nothing = dict.fromkeys(PHASES, 0.0)
    single_phases, *group_phases = sorted(
        cloud.phases_by_thread.values(), key=lambda phases: phases[WAIT]
    )
    assert single_phases == pytest.approx(nothing | {LOCKS: LONG})
    assert group_phases == [pytest.approx(nothing | {WAIT: LONG})] * 3
    assert grown(before, "claim_group_size_count") == 1
    assert grown(before, "claim_group_size_sum") == 3
    # Each claim has a wait, and all three share one transaction.
    for phase in PHASES:
        transactions = 2 if phase in TRANSACTION else 4
        assert grown(before, "claim_seconds_count", phase) == transactions
