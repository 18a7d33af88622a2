# SPDX-License-Identifier: Apache-2.0
"""A claim waits while other sessions hold the locks that it needs, and succeeds in the end."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import sqlalchemy as sa

from tests.bodies import claim_of
from tests.databases import EACH_SERVER, server_of
from tests.faults.harness.load import build
from tests.faults.harness.service import client_of, running
from tests.lock_waits import await_waiter, lock, session_of
from treeclaim.model.errors import ResourceClassInUseError
from treeclaim.model.provider import Inventory
from treeclaim.store import DatabaseSettings, Store
from treeclaim.store.database.timeouts import Timeouts
from treeclaim.store.operations.catalogue import resource_classes
from treeclaim.store.operations.providers import providers

pytestmark = pytest.mark.slow


@pytest.fixture(params=EACH_SERVER, scope="module")
def place(request, tmp_path_factory):
    """A server, a database there, and a service on that."""
    server = server_of(request.param)
    folder = tmp_path_factory.mktemp("locks")
    with server.database(folder) as database, running(database, folder, workers=1) as service:
        engine = sa.create_engine(database)
        yield Place(server, engine, service)
        engine.dispose()


@dataclass(frozen=True)
class Place:
    server: object
    engine: sa.Engine
    service: object


class Claim:
    """A claim in a thread of its own on all hosts."""

    def __init__(self, url, world):
        self.answer = None
        self.consumer = str(uuid.uuid4())
        self._thread = threading.Thread(target=self._run, args=(url, world))
        self._thread.start()

    def _run(self, url, world):
        body = claim_of(
            {host: {"resources": {"VCPU": 1}} for host in world.hosts},
            project_id="project",
            user_id="user",
        )
        with client_of(url) as client:
            self.answer = client.put(f"/allocations/{self.consumer}", json=body)

    def finished(self):
        self._thread.join(timeout=60)
        assert self.answer is not None
        return self.answer


def test_deadlocked_claim_is_retried(place):
    world = build(place.service.url)
    with place.engine.connect() as holder:
        if place.server.user == "postgres":
            # Only the other one looks for deadlocks, so it is the victim.
            holder.exec_driver_sql("SET deadlock_timeout = '1h'")
        else:
            # The one that changed less is the victim.
            for _ in range(50):
                holder.exec_driver_sql("INSERT INTO projects (external_id) VALUES (uuid())")
        # The claim has the first host and waits for the last; then the holder wants the first.
        lock(holder, world.hosts[-1])
        claim = Claim(place.service.url, world)
        await_waiter(place.engine, session_of(holder))
        lock(holder, world.hosts[0])
        holder.commit()
    assert claim.finished().status_code == 204


def test_claim_outlasts_the_lock_wait_timeout_of_the_server(place):
    if place.server.user == "postgres":
        pytest.skip("PostgreSQL lets everybody wait without end")
    world = build(place.service.url)
    with place.engine.connect() as holder:
        limit = holder.exec_driver_sql("SELECT @@global.innodb_lock_wait_timeout").scalar()
        assert limit < Timeouts().lock
        lock(holder, world.hosts[0])
        claim = Claim(place.service.url, world)
        await_waiter(place.engine, session_of(holder), limit)
        assert claim.answer is None
        holder.commit()
    assert claim.finished().status_code == 204


def test_class_is_not_deleted_while_its_first_inventory_is_created(place):
    settings = DatabaseSettings(place.engine.url.render_as_string(hide_password=False))
    store = Store(settings)
    name, provider = "CUSTOM_GOLD", str(uuid.uuid4())
    store.write(resource_classes.create, name)
    store.write(providers.create, uuid=provider, name=provider, parent_uuid=None)
    with ThreadPoolExecutor() as pool:

        def add(transaction):
            providers.write_inventories(transaction, provider, {name: Inventory(8)})
            deletion = pool.submit(store.write, resource_classes.delete, name)
            await_waiter(place.engine, session_of(transaction.connection))
            return deletion

        with pytest.raises(ResourceClassInUseError):
            store.write(add).result(timeout=30)
    assert name in store.read(resource_classes.find_ids, [name])
    store.close()
