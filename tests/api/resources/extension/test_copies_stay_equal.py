# SPDX-License-Identifier: Apache-2.0
"""A client that lists and then watches misses nothing: copies equal a full read after any event."""

import random
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import timedelta

import httpx
import orjson
import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.bodies import claim_of
from tests.databases import EACH_DATABASE, empty_database
from tests.servers import eventually, service_environment, serving
from tests.service import HEADERS
from treeclaim.client import Client, follow
from treeclaim.store import DatabaseSettings, Store

INCLUDE = ("inventories", "usages", "traits", "aggregates", "allocations")
SECONDS = 120
HOSTS = 12
KEPT_SECONDS = 5


class ListCountingClient(Client):
    """Counts the lists of all providers that it reads."""

    lists = 0

    def pages(self, path, **filters):
        self.lists += "uuid" not in filters
        return super().pages(path, **filters)


class Follower(threading.Thread):
    """Keeps a copy of all providers, or of some trees, until stopped.

    Attributes:
        copy: JSON of the latest copy, ordered.
        times: How often it was brought up to date.
        client: Its client.
        is_over: Set to end it with the next change.
    """

    def __init__(self, url, trees):
        """Begin to follow."""
        super().__init__(daemon=True)
        self.trees = trees
        self.copy = None
        self.times = 0
        self.is_over = False
        self.client = ListCountingClient(url, token="admin")
        self.start()

    def run(self):
        with self.client:
            for providers in follow(self.client, INCLUDE, in_tree=self.trees):
                self.copy = orjson.dumps(providers, option=orjson.OPT_SORT_KEYS)
                self.times += 1
                if self.is_over:
                    return


def read_fully(url, trees):
    """A full read, as a follower of these trees has it."""
    headers = HEADERS | {"openstack-api-version": "placement 1.39, treeclaim latest"}
    path = f"{url}/treeclaim/providers"
    parameters = {"include": ",".join(INCLUDE)}
    if trees:
        parameters["in_tree"] = f"in:{','.join(trees)}"
    answer = httpx.get(path, params=parameters, headers=headers, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    providers = {provider["uuid"]: provider for provider in answer.json()["providers"]}
    return orjson.dumps(providers, option=orjson.OPT_SORT_KEYS)


def write(url, seed, steps):
    """Send random writes; return the number of acknowledged writes.

    Refused writes, and writes to an absent server, are skipped.
    """
    choice, done = random.Random(seed), 0
    with httpx.Client(base_url=url, headers=HEADERS, timeout=SECONDS) as http:
        for step in range(steps):
            try:
                done += write_once(http, choice, step).is_success
            except httpx.HTTPError:
                continue
    return done


def write_once(http, choice, step):
    """Make a random write; return the response."""
    host = uuid_of(f"host {choice.randrange(HOSTS)}")
    path = f"/resource_providers/{host}"
    kind = choice.randrange(8)
    if kind == 0:
        return http.delete(path)
    shown = http.get(path)
    if shown.status_code == 404:
        return http.post("/resource_providers", json={"name": host, "uuid": host})
    if kind <= 2:
        consumer = uuid_of(f"consumer {choice.randrange(10)}")
        held = http.get(f"/allocations/{consumer}").json()
        body = claim_of(
            {host: {"resources": {"VCPU": 1 + step % 3}}},
            consumer_generation=held.get("consumer_generation"),
        )
        return http.put(f"/allocations/{consumer}", json=body)
    parent = choice.choice((None, uuid_of(f"host {choice.randrange(HOSTS)}")))
    traits = choice.sample(("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"), choice.randrange(3))
    generation = {"resource_provider_generation": shown.json()["generation"]}
    bodies = {
        "": {"name": host, "parent_provider_uuid": parent},
        "/traits": generation | {"traits": traits},
        "/aggregates": generation | {"aggregates": [uuid_of(f"aggregate {step % 3}")]},
        "/inventories": generation | {"inventories": {"VCPU": {"total": 100 + step}}},
    }
    part = choice.choice(list(bodies))
    return http.put(path + part, json=bodies[part])


def change_all(url):
    """Change each provider; make those that are not there."""
    with httpx.Client(base_url=url, headers=HEADERS, timeout=SECONDS) as http:
        for number in range(HOSTS):
            uuid = uuid_of(f"host {number}")
            http.post("/resource_providers", json={"name": uuid, "uuid": uuid})
            http.put(f"/resource_providers/{uuid}", json={"name": f"last {number}"})


@contextmanager
def pruned_all_along(url):
    """Keep pruning rows that are older than a few seconds."""
    over = threading.Event()
    store = Store(DatabaseSettings(url))

    def prune():
        while not over.wait(0.5):
            store.housekeeper.prune(timedelta(seconds=KEPT_SECONDS))

    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune)
        try:
            yield
        finally:
            over.set()
            pruning.result()
    store.close()


WATCHED = ((), ("host 0",), ("host 2", "host 6"), ("nobody", "host 7"))
"""The trees of each follower, named by providers that move; none for all."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_copies_equal_a_full_read_under_load_over_restarts_and_pruning(kind, tmp_path):
    writers, steps, restarts = 4, 60, 2
    with (
        empty_database(kind, tmp_path) as database,
        serving(
            service_environment(tmp_path, database), tmp_path, "--workers=2", headers=HEADERS
        ) as server,
    ):
        followers = [Follower(server.url, list(map(uuid_of, names))) for names in WATCHED]
        whole = followers[0]
        eventually(
            lambda: all(follower.times for follower in followers), "all have listed", SECONDS
        )
        with pruned_all_along(database), ThreadPoolExecutor(writers) as pool:
            for turn in range(restarts + 1):
                before = whole.times
                writes = [
                    pool.submit(write, server.url, f"{turn} {number}", steps)
                    for number in range(writers)
                ]
                if turn < restarts:
                    wait(writes, SECONDS, FIRST_COMPLETED)
                    server.stop()
                    server.start()
                assert sum(future.result() for future in writes) > 0
                eventually(lambda: whole.times > before, "a newer copy", SECONDS)  # noqa: B023
        for follower in followers:
            expected = read_fully(server.url, follower.trees)
            assert follower is not whole or orjson.loads(expected)
            eventually(
                lambda follower=follower, expected=expected: follower.copy == expected,
                "an equal copy",
                SECONDS,
            )
        assert whole.times > restarts + 1
        lists = sum(follower.client.lists for follower in followers)
        assert lists < sum(follower.times for follower in followers)
        for follower in followers:
            follower.is_over = True
        change_all(server.url)
        for follower in followers:
            follower.join(SECONDS)
