# SPDX-License-Identifier: Apache-2.0
"""Placements and old-style claims of several processes at once (contract page 98, section 4)."""

import random
import tempfile
import uuid
from collections import Counter

import pytest

from tests.databases import EACH_DATABASE, empty_database
from tests.fresh_processes import FRESH
from tests.service import client_of, schema_on, start_on

WORKERS = 4
ROUNDS = 25
HOSTS = 6
ROOM = 10
VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}


def host(number):
    """The uuid of a host."""
    return str(uuid.UUID(int=number + 1))


class Worker:
    """Places, claims and releases at random; knows what it holds."""

    def __init__(self, client, seed):
        self.client = client
        self.chance = random.Random(seed)
        self.held = {}
        self.counts = Counter()

    def act(self):
        """Do one thing."""
        kind = self.chance.choice(["place", "place", "place", "claim", "release"])
        self.counts[kind, getattr(self, kind)()] += 1

    def place(self):
        """Place some consumers on different hosts, and perhaps say it again."""
        consumers = [str(uuid.uuid4()) for _ in range(self.chance.randint(2, 4))]
        amount = self.chance.randint(1, 4)
        body = {
            "requests": [
                {
                    "alternatives": [f"resources=VCPU:{amount}&order_by=spread"],
                    "consumers": consumers,
                    **OWNER,
                }
            ],
            "rules": [{"domains": "tree", "max_per_domain": 1}],
            "partial": self.chance.random() < 0.3,
        }
        answer = self.client.post("/treeclaim/placements", json=body)
        if answer.status_code not in (200, 201):
            assert answer.status_code == 409, answer.text
            code = answer.json()["errors"][0]["code"]
            assert code in ("treeclaim.unplaced", "placement.concurrent_update"), answer.text
            return code
        placements = answer.json()["placements"]
        roots = [one["root_providers"][0]["uuid"] for one in placements]
        assert len(set(roots)) == len(roots), "two consumers of a call are on one host"
        assert body["partial"] or len(placements) == len(consumers), "half of a call was placed"
        for one, root in zip(placements, roots, strict=True):
            self.held[one["consumer"]] = {root: amount}
        if placements and self.chance.random() < 0.5:
            self.repeat(body, placements)
        return answer.status_code

    def repeat(self, body, found):
        """Say it again: what was told before is told again."""
        body["requests"][0]["consumers"] = [one["consumer"] for one in found]
        again = self.client.post("/treeclaim/placements", json=body)
        assert again.status_code == 200, again.text
        assert [placement["allocations"] for placement in again.json()["placements"]] == [
            one["allocations"] for one in found
        ]

    def claim(self):
        """Claim on a host as Nova does."""
        consumer, root = str(uuid.uuid4()), host(self.chance.randrange(HOSTS))
        amount = self.chance.randint(1, 4)
        body = {
            "allocations": {root: {"resources": {"VCPU": amount}}},
            "consumer_generation": None,
            **OWNER,
        }
        answer = self.client.put(f"/allocations/{consumer}", json=body)
        assert answer.status_code in (204, 409), answer.text
        if answer.status_code == 204:
            self.held[consumer] = {root: amount}
        return answer.status_code

    def release(self):
        """Give something back."""
        if not self.held:
            return "nothing"
        consumer = self.chance.choice(sorted(self.held))
        answer = self.client.delete(f"/allocations/{consumer}")
        assert answer.status_code == 204, answer.text
        del self.held[consumer]
        return 204


def work(url, seed, answers):
    """Place and release consumers, in a process."""
    with (
        tempfile.TemporaryDirectory() as folder,
        start_on(url, folder) as application,
        client_of(application) as client,
    ):
        client.headers.update(VERSION)
        worker = Worker(client, seed)
        try:
            for _ in range(ROUNDS):
                worker.act()
        finally:
            answers.put((worker.held, dict(worker.counts)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", EACH_DATABASE)
def test_concurrent_placements_are_atomic_and_never_overbook(kind, tmp_path):
    with empty_database(kind, tmp_path) as url:
        schema_on(url)
        with start_on(url, tmp_path) as application, client_of(application) as client:
            client.headers.update(VERSION)
            for number in range(HOSTS):
                create(client, number)
            held, counts = run(url)
            judge(client, held)
    assert counts["place", 201], counts


def create(client, number):
    """Create a host."""
    body = {"name": f"host {number}", "uuid": host(number)}
    assert client.post("/resource_providers", json=body).is_success
    path = f"/resource_providers/{host(number)}/inventories"
    body = {"inventories": {"VCPU": {"total": ROOM}}, "resource_provider_generation": 0}
    assert client.put(path, json=body).is_success


def run(url):
    """Let all processes work; return what they hold, and what they were told."""
    answers = FRESH.Queue()
    workers = [FRESH.Process(target=work, args=(url, seed, answers)) for seed in range(WORKERS)]
    for worker in workers:
        worker.start()
    results = [answers.get(timeout=240) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    held, counts = {}, Counter()
    for mine, told in results:
        held |= mine
        counts.update(told)
    return held, counts


def judge(client, held):
    """Check that the service has what the processes were told, and that it fits."""
    used = Counter()
    for consumer, amounts in held.items():
        allocations = client.get(f"/allocations/{consumer}").json()["allocations"]
        assert {uuid_: one["resources"]["VCPU"] for uuid_, one in allocations.items()} == amounts
        used.update(amounts)
    for number in range(HOSTS):
        path = f"/resource_providers/{host(number)}"
        usage = client.get(f"{path}/usages").json()["usages"]["VCPU"]
        assert usage == used[host(number)] <= ROOM
