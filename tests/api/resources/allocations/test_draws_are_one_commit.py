# SPDX-License-Identifier: Apache-2.0
"""Clients that draw from one hold at the same time, over HTTP (contract page 100; decision 0014)."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest
import sqlalchemy as sa

from tests.databases import EACH_DATABASE
from tests.service import client_of, fresh_database_on, services_on_database
from treeclaim import metrics
from treeclaim.store.schema import tables
from treeclaim.store.writes import groups

CLIENTS = 16
PATIENT = 60.0
VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
OWNER = {"project_id": "p", "user_id": "u", "consumer_generation": None}
HOST, HOLD, *TAKERS = (str(uuid.UUID(int=number + 1)) for number in range(CLIENTS + 2))
THREADS = {"treeclaim.server_threads": 4 * CLIENTS}
"""Half of which may be writes."""

ROOM = 3 * CLIENTS


@pytest.fixture(params=EACH_DATABASE)
def service(request, tmp_path, monkeypatch):
    """A service, and a client of it, with a host that one hold has for itself."""
    monkeypatch.setattr(groups, "PATIENCE", PATIENT)
    with (
        fresh_database_on(request.param, tmp_path) as url,
        services_on_database(url, tmp_path, **THREADS) as (services, application),
        client_of(application, **VERSION) as client,
    ):
        entry = {"uuid": HOST, "name": "host", "inventories": {"VCPU": {"total": ROOM}}}
        answer = client.post("/treeclaim/providers", json={"providers": [entry]})
        assert answer.status_code == 200, answer.text
        yield services, client


def claimed(client, consumer, amount, **more):
    """The status of a claim on the host."""
    body = {"allocations": {HOST: {"resources": {"VCPU": amount}}}, **OWNER, **more}
    return client.put(f"/allocations/{consumer}", json=body).status_code


def commits(services):
    """The number of transactions in the change feed: each is a position in a stream."""
    positions = sa.select(sa.func.sum(tables.streams.c.position))
    return int(services.store.read(lambda transaction: transaction.scalar(positions)))


def test_concurrent_draws_from_one_hold_share_a_commit(service):
    services, client = service
    assert claimed(client, HOLD, ROOM, hold={"returns": True}) == 204
    before, retries = commits(services), metrics.RETRIES._value.get()
    waiting = services.store._groups
    run_alone, run_group = waiting._run_alone, waiting._run_group
    sizes = []

    def first_alone(member):
        """The first finds nobody, and so is alone; all others come before it ends."""
        end = monotonic() + PATIENT
        while len(waiting._waiting) < CLIENTS:
            assert monotonic() < end
            threading.Event().wait(0.001)
        run_alone(member)

    def noted(group):
        sizes.append(len(group))
        run_group(group)

    waiting._run_alone, waiting._run_group = first_alone, noted
    first = str(uuid.uuid4())
    draws = {"from_holds": [HOLD], "consumer_type": "INSTANCE"}
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        result = list(pool.map(lambda taker: claimed(client, taker, 2, **draws), [first, *TAKERS]))
    assert result == [204] * (CLIENTS + 1)
    assert sizes == [CLIENTS]
    assert commits(services) - before == 2
    assert metrics.RETRIES._value.get() == retries
    shown = client.get(f"/allocations/{HOLD}").json()
    assert shown["hold"]["drawn"] == {HOST: {"VCPU": 2 * (CLIENTS + 1)}}
    assert shown["allocations"][HOST]["resources"] == {"VCPU": ROOM - 2 * (CLIENTS + 1)}
    # The generation moves by one with each write, however many share a transaction.
    assert shown["consumer_generation"] == 1 + CLIENTS + 1
