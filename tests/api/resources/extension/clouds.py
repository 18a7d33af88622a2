# SPDX-License-Identifier: Apache-2.0
"""Small random clouds over HTTP, and the responses of their single URLs."""

import random
import uuid
from contextlib import ExitStack, contextmanager

import sqlalchemy as sa

from tests.bodies import claim_of
from tests.service import client_of, fresh_database_on, start_on

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TRAITS = ("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", "CUSTOM_BLUE")
TYPES = ("INSTANCE", "MIGRATION")


def uuid_of(name):
    """A uuid that depends on the name alone."""
    return str(uuid.uuid5(uuid.UUID(int=99), name))


AGGREGATES = tuple(uuid_of(f"aggregate {number}") for number in range(4))


class Cloud:
    """A service with a random world in it, and a client of it."""

    def __init__(self, client, engine):
        self.client = client
        self.engine = engine
        self.random = random.Random(0)
        self.providers = []

    def ask(self, path, **parameters):
        """The body of an answer of the extension."""
        answer = self.client.get(path, params=parameters or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pages(self, path, member, **parameters):
        """All pages that links lead to, as lists of entries."""
        pages = [self.ask(path, **parameters)]
        while pages[-1]["links"]:
            (link,) = pages[-1]["links"]
            assert link["rel"] == "next"
            pages.append(self.ask(link["href"]))
        return [page[member] for page in pages]

    def fill(self, trees=6, consumers=25):
        """Make trees, traits, aggregates, inventories and claims."""
        assert self.client.put("/traits/CUSTOM_BLUE").is_success
        entries = []
        for number in range(trees):
            entries.append(self._entry(f"host-{number}"))
            root = entries[-1]["uuid"]
            children = range(self.random.randrange(3))
            entries += [self._entry(f"host-{number}-{child}", root) for child in children]
        self.post("/treeclaim/providers", {"providers": entries})
        self.providers = [entry["uuid"] for entry in entries]
        for number in range(consumers):
            self.claim(uuid_of(f"consumer {number}"))
        return self

    def _entry(self, name, parent=None):
        choice = self.random
        inventories = {
            resource_class: {
                "total": choice.randrange(8, 64),
                "reserved": choice.randrange(3),
                "allocation_ratio": choice.choice([1.0, 1.5, 16.0, 0.9]),
            }
            for resource_class in CLASSES
            if choice.random() < 0.8
        }
        return {
            "name": name,
            "uuid": uuid_of(name),
            "parent_provider_uuid": parent,
            "inventories": inventories,
            "traits": [trait for trait in TRAITS if choice.random() < 0.4],
            "aggregates": [aggregate for aggregate in AGGREGATES if choice.random() < 0.3],
        }

    def claim(self, consumer, generation=None):
        """Claim something for a consumer where there is room."""
        choice = self.random
        allocations = {
            provider: {"resources": {choice.choice(CLASSES): choice.randrange(1, 4)}}
            for provider in choice.sample(self.providers, min(2, len(self.providers)))
        }
        body = claim_of(
            allocations,
            project_id=choice.choice(["red", "green"]),
            user_id=choice.choice(["ann", "bob"]),
            consumer_generation=generation,
            consumer_type=choice.choice(TYPES),
        )
        self.client.put(f"/allocations/{consumer}", json=body)

    def post(self, path, body):
        """The body of the answer to a POST of the extension."""
        answer = self.client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def cloud_on(kind, folder, **overrides):
    """An empty cloud on a kind of database."""
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database_on(kind, folder))
        application = stack.enter_context(start_on(url, folder, **overrides))
        engine = sa.create_engine(url)
        stack.callback(engine.dispose)
        yield Cloud(stack.enter_context(client_of(application, **EXTENDED)), engine)
