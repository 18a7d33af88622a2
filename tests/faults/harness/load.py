# SPDX-License-Identifier: Apache-2.0
"""Many clients claim, place, move, shrink and release at random, and remember the answers.

A few hosts with VCPU, and one shared pool with DISK_GB. Each client has consumers of its own, so it
knows what must be stored. An answer that got lost leaves a consumer in doubt: it is left alone, and
what became of it is found out in the end. `Load.judge` checks everything that was seen.
"""

import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass

from tests.bodies import add_hosts
from tests.faults.harness.callers import Client, Doubt, Reader, amounts_of, effects_of, judge_lost
from tests.faults.harness.linearizability import FOREVER, State, Step, explained
from tests.faults.harness.service import body_of, client_of
from tests.servers import eventually

HOSTS = 3
CLIENTS = 32
READERS = 8
CAPACITY = {"VCPU": 60, "DISK_GB": 150}


@dataclass(frozen=True, slots=True)
class World:
    """The providers: their classes by uuid."""

    classes: dict
    pool: str

    @property
    def hosts(self):
        """All providers but the one that all share."""
        return [provider for provider in self.classes if provider != self.pool]

    def capacity(self, provider):
        """Return how many units a provider has."""
        return CAPACITY[self.classes[provider]]


def build(url):
    """Create the providers through the API."""
    classes = {str(uuid.uuid4()): "VCPU" for _ in range(HOSTS)}
    pool = str(uuid.uuid4())
    classes[pool] = "DISK_GB"
    with client_of(url) as client:
        for provider, name in classes.items():
            add_hosts(client, provider, **{name: CAPACITY[name]})
    return World(classes, pool)


class Load:
    """A number of clients and readers, and all they saw."""

    def __init__(self, url):
        self.url = url
        self.world = world = build(url)
        self.stop = threading.Event()
        self.problems = []
        self.steps = {provider: [] for provider in world.classes}
        self.doubts = []
        self.placings = []
        self.answers = Counter()
        self._lock = threading.Lock()
        self._clients = [Client(self, number) for number in range(CLIENTS)]
        callers = [*self._clients, *(Reader(self, number) for number in range(READERS))]
        self.threads = [threading.Thread(target=caller.run) for caller in callers]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout=120)
            assert not thread.is_alive()

    def wait_for(self, count):
        """Wait until so many more writes have succeeded."""
        target_count = self.answers["success"] + count
        eventually(lambda: self.answers["success"] >= target_count or self.problems)
        assert not self.problems, self.problems[:3]

    def saw(self, provider, step):
        """Note a step in the life of a provider."""
        with self._lock:
            self.steps[provider].append(step)

    def count(self, kind):
        with self._lock:
            self.answers[kind] += 1

    def judge(self):
        """Compare the answers with the stored state, and check that each history is linearizable."""
        assert not self.problems, self.problems[:3]
        with client_of(self.url) as client:
            stored = {}
            known_allocations = {
                uuid: allocations
                for caller in self._clients
                for uuid, allocations in caller.known_allocations.items()
            }
            for consumer, allocations in known_allocations.items():
                stored[consumer] = stored_amounts(client, consumer)
                assert stored[consumer] == allocations.amounts, (
                    consumer,
                    allocations,
                    stored[consumer],
                )
            for doubt in self.doubts:
                present = {uuid: stored_amounts(client, uuid) for uuid in doubt.before}
                assert present in (doubt.before, doubt.after), (doubt, present)
                stored |= present
                if present == doubt.after != doubt.before:
                    self.succeeded(doubt, FOREVER)
            for lost in self.placings:
                present = {uuid: stored_amounts(client, uuid) for uuid in lost.consumers}
                stored |= present
                if judge_lost(client, lost, present):
                    self.placed(lost, present, FOREVER)
            for provider, name in self.world.classes.items():
                self._judge_provider(client, provider, name, stored)

    def _judge_provider(self, client, provider, name, stored):
        answer = body_of(client, f"/resource_providers/{provider}/usages")
        usage = answer["usages"][name]
        assert usage == sum(amounts.get(provider, 0) for amounts in stored.values())
        assert usage <= self.world.capacity(provider)
        now = time.monotonic()
        last = Step("read", now, now, usage, answer["resource_provider_generation"])
        steps = [*self.steps[provider], last]
        first = State(generation=1)
        assert explained(steps, self.world.capacity(provider), first), (provider, steps)

    def placed(self, call, allocations, end):
        """Record a placement as one write of all its consumers."""
        nothing = {consumer: {} for consumer in allocations}
        numbers = dict.fromkeys(allocations, 1)
        write = Doubt(call.start, nothing, allocations, unchecked=False, numbers=numbers)
        self.succeeded(write, end)

    def succeeded(self, write, end):
        """Record the effect of a write on each provider."""
        effects = effects_of(write.before, write.after, unchecked=write.unchecked)
        for provider, (usage, generation) in effects.items():
            consumers = {
                consumer: (write.numbers[consumer], provider in write.after[consumer])
                for consumer in write.after
                if provider in write.before[consumer] or provider in write.after[consumer]
            }
            self.saw(provider, Step("success", write.start, end, usage, generation, consumers))


def stored_amounts(client, consumer):
    """Return the amounts that a consumer has, by provider."""
    return amounts_of(body_of(client, f"/allocations/{consumer}"))
