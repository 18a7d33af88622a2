# SPDX-License-Identifier: Apache-2.0
"""A client that lists and then watches misses nothing: copies equal a full read after any event."""

import random
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import httpx
import orjson
import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.bodies import claim_of
from tests.databases import EACH_DATABASE, empty_database
from tests.server.fronts import running
from tests.servers import eventually, service_environment, serving
from tests.service import HEADERS, schema_on, start_on
from treeclaim.client import Client, follow
from treeclaim.client import watching as client_watching
from treeclaim.store import DatabaseSettings, Store

INCLUDE = ("inventories", "usages", "traits", "aggregates", "allocations")
SECONDS = 120
HOSTS = 12
KEPT_SECONDS = 5


class Follower(threading.Thread):
    """Keeps a copy until it is told to stop.

    Attributes:
        copy: JSON of the latest copy, ordered.
        times: How often it was brought up to date.
        is_over: Set to end it with the next change.
    """

    def __init__(self, url):
        """Begin to follow."""
        super().__init__(daemon=True)
        self.copy = None
        self.times = 0
        self.is_over = False
        self._url = url
        self.start()

    def run(self):
        with Client(self._url, token="admin") as client:
            for providers in follow(client, INCLUDE):
                self.copy = orjson.dumps(providers, option=orjson.OPT_SORT_KEYS)
                self.times += 1
                if self.is_over:
                    return


def read_fully(url):
    """A full read, as followers have it."""
    headers = HEADERS | {"openstack-api-version": "placement 1.39, treeclaim latest"}
    path = f"{url}/treeclaim/providers"
    answer = httpx.get(
        path, params={"include": ",".join(INCLUDE)}, headers=headers, timeout=SECONDS
    )
    assert answer.status_code == 200, answer.text
    providers = {provider["uuid"]: provider for provider in answer.json()["providers"]}
    return orjson.dumps(providers, option=orjson.OPT_SORT_KEYS)


class Writer:
    """Makes random writes; what is refused, or meets a server that is away, is left."""

    def __init__(self, url, seed):
        """Write to a service."""
        self.random = random.Random(seed)
        self._http = httpx.Client(base_url=url, headers=HEADERS, timeout=SECONDS)

    def __enter__(self):
        """Write until the end of a block."""
        return self

    def __exit__(self, *_error):
        """Close the connections."""
        self._http.close()

    def work(self, steps):
        """Make so many writes; return how many were acknowledged."""
        done = 0
        for step in range(steps):
            try:
                done += self._write(step).is_success
            except httpx.HTTPError:
                continue
        return done

    def add(self, host):
        return self._http.post("/resource_providers", json={"name": host, "uuid": uuid_of(host)})

    def _write(self, step):  # noqa: PLR0911 - a kind of write each
        choice = self.random
        host = uuid_of(f"host {choice.randrange(HOSTS)}")
        path = f"/resource_providers/{host}"
        what = choice.randrange(8)
        if what == 0:
            return self._http.delete(path)
        shown = self._http.get(path)
        if shown.status_code == 404:
            return self._http.post("/resource_providers", json={"name": host, "uuid": host})
        generation = {"resource_provider_generation": shown.json()["generation"]}
        if what == 1:
            parent = choice.choice((None, uuid_of(f"host {choice.randrange(HOSTS)}")))
            body = {"name": host, "parent_provider_uuid": parent}
            return self._http.put(path, json=body)
        if what == 2:
            traits = choice.sample(("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"), choice.randrange(3))
            return self._http.put(f"{path}/traits", json=generation | {"traits": traits})
        if what == 3:
            body = generation | {"aggregates": [uuid_of(f"aggregate {step % 3}")]}
            return self._http.put(f"{path}/aggregates", json=body)
        if what in (4, 5):
            body = generation | {"inventories": {"VCPU": {"total": 100 + step}}}
            return self._http.put(f"{path}/inventories", json=body)
        consumer = uuid_of(f"consumer {choice.randrange(10)}")
        held = self._http.get(f"/allocations/{consumer}").json()
        body = claim_of(
            {host: {"resources": {"VCPU": 1 + step % 3}}},
            consumer_generation=held.get("consumer_generation"),
        )
        return self._http.put(f"/allocations/{consumer}", json=body)


def write(url, seed, steps):
    """Make so many random writes with connections of their own."""
    with Writer(url, seed) as writer:
        return writer.work(steps)


@contextmanager
def pruned_all_along(url):
    """Prune what is older than a few seconds, again and again."""
    over = threading.Event()
    store = Store(DatabaseSettings(url))

    def prune():
        while not over.wait(0.5):
            store.prune(timedelta(seconds=KEPT_SECONDS))

    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune)
        try:
            yield
        finally:
            over.set()
            pruning.result()
    store.close()


def all_go_on(followers, before):
    """Wait until each has brought its copy up to date more often than before."""
    pairs = list(zip(followers, before, strict=True))
    eventually(
        lambda: all(one.times > times for one, times in pairs), "all have newer copies", SECONDS
    )


class Here:
    """A service in this process that can be started again.

    Attributes:
        url: Where it answers.
    """

    def __init__(self, database, folder):
        self.url = None
        self._where = (database, folder)
        self._port = 0
        self._running = ExitStack()

    def start(self):
        """Start it, at the port that it had."""
        application = self._running.enter_context(start_on(*self._where))
        server = self._running.enter_context(running(application, threads=8, port=self._port))
        self._port = server.address[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def stop(self):
        self._running.close()


@contextmanager
def here(database, folder):
    """A service in this process, for a block."""
    schema_on(database)
    server = Here(database, folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def as_processes(database, folder):
    """A service of two workers, for a block."""
    environment = service_environment(folder, database)
    with serving(environment, folder, "--workers=2", headers=HEADERS) as server:
        yield server


def compare(kind, folder, monkeypatch, serve, *, writers, steps, restarts):
    """Have some write to a service that is restarted, and compare copies in the end."""
    lists = []
    listed = client_watching._list_all

    def counted(*given):
        lists.append(1)
        return listed(*given)

    monkeypatch.setattr(client_watching, "_list_all", counted)
    with empty_database(kind, folder) as database, serve(database, folder) as server:
        followers = [Follower(server.url) for _ in range(2)]
        all_go_on(followers, [0, 0])
        with pruned_all_along(database), ThreadPoolExecutor(writers) as pool:
            for turn in range(restarts + 1):
                before = [follower.times for follower in followers]
                done = [
                    pool.submit(write, server.url, f"{turn} {number}", steps)
                    for number in range(writers)
                ]
                if turn < restarts:
                    wait(done, SECONDS, FIRST_COMPLETED)
                    server.stop()
                    server.start()
                assert sum(one.result() for one in done) > 0
                all_go_on(followers, before)
        expected = read_fully(server.url)
        assert len(orjson.loads(expected)) > 0
        for follower in followers:
            eventually(lambda one=follower: one.copy == expected, "an equal copy", SECONDS)
            assert follower.times > restarts + 1
        assert len(lists) < sum(follower.times for follower in followers)
        for follower in followers:
            follower.is_over = True
        with Writer(server.url, 0) as writer:
            writer.add("last")
        for follower in followers:
            follower.join(SECONDS)


@pytest.mark.slow
def test_a_copy_by_list_and_watch_equals_a_full_read(tmp_path, monkeypatch):
    compare("sqlite", tmp_path, monkeypatch, here, writers=2, steps=25, restarts=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_copies_equal_a_full_read_under_load_over_restarts_and_pruning(
    kind, tmp_path, monkeypatch
):
    compare(kind, tmp_path, monkeypatch, as_processes, writers=4, steps=60, restarts=2)
