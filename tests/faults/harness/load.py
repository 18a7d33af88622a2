# SPDX-License-Identifier: Apache-2.0
"""Many clients claim, place, move, shrink and give back at random, and remember what they were told.

A few hosts with VCPU, and one shared pool with DISK_GB. Each client has consumers of its own, so it
knows what must be stored. An answer that got lost leaves a consumer in doubt: it is left alone, and
what became of it is found out in the end. `Load.judge` says whether all that was seen is right.
"""

import random
import re
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field

import httpx

from tests.bodies import add_hosts, claim_of
from tests.faults.harness.linearizability import FOREVER, State, Step, explained
from tests.faults.harness.placements import Placing, judge_lost
from tests.faults.harness.service import body_of, client_of
from tests.servers import eventually

HOSTS = 3
CLIENTS = 32
READERS = 8
REQUESTS_A_CONNECTION = 8
CAPACITY = {"VCPU": 60, "DISK_GB": 150}
_REFUSED = re.compile(r"on resource provider '([0-9a-f-]+)'\. The requested amount would exceed")


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


@dataclass(slots=True)
class KnownAllocations:
    """The allocations of a consumer, as far as its client knows."""

    amounts: dict = field(default_factory=dict)
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A write whose answer may get lost: what its consumers held before, and would hold after.

    `numbers` has which write of its life this is for each consumer.
    """

    start: float
    before: dict
    after: dict
    unchecked: bool
    numbers: dict


class Load:
    """A number of clients and readers, and all they saw."""

    def __init__(self, urls, world, seed=0):
        self.urls = urls
        self.world = world
        self.stop = threading.Event()
        self.problems = []
        self.steps = {provider: [] for provider in world.classes}
        self.doubts = []
        self.placings = []
        self.answers = Counter()
        self.known = {}
        self._lock = threading.Lock()
        clients = [_Client(self, seed * 1000 + number) for number in range(CLIENTS)]
        readers = [_Reader(self, number) for number in range(READERS)]
        self.threads = [threading.Thread(target=caller.run) for caller in (*clients, *readers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout=120)
            assert not thread.is_alive()

    def successes(self):
        """Return how many writes have succeeded so far."""
        return self.answers["success"]

    def wait_for(self, more, seconds=180):
        """Wait until so many more writes have succeeded."""
        wanted = self.successes() + more
        eventually(lambda: self.successes() >= wanted or self.problems, seconds=seconds)
        assert not self.problems, self.problems[:3]

    def saw(self, provider, step):
        """Note a step in the life of a provider."""
        with self._lock:
            self.steps[provider].append(step)

    def count(self, kind):
        with self._lock:
            self.answers[kind] += 1

    def judge(self, url=None):
        """Compare what was promised with what is stored; explain all that was seen."""
        assert not self.problems, self.problems[:3]
        with client_of(url or self.urls[0]) as client:
            stored = {}
            for consumer, known in self.known.items():
                stored[consumer] = stored_amounts(client, consumer)
                assert stored[consumer] == known.amounts, (consumer, known, stored[consumer])
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
        """Remember what a placement did: one write of all its consumers."""
        nothing = {consumer: {} for consumer in allocations}
        numbers = dict.fromkeys(allocations, 1)
        write = Doubt(call.start, nothing, allocations, unchecked=False, numbers=numbers)
        self.succeeded(write, end)

    def succeeded(self, write, end):
        """Remember what a write did to each provider."""
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


def amounts_of(document):
    """Return the amounts of a consumer's document, by provider; there is one class at each."""
    return {
        provider: next(iter(allocation["resources"].values()))
        for provider, allocation in document["allocations"].items()
    }


def effects_of(before, after, *, unchecked):
    """Return the change of usage and generation of each provider by a write (page 70, section 1.2)."""
    providers = {uuid for amounts in (*before.values(), *after.values()) for uuid in amounts}
    effects = {}
    for provider in providers:
        usage = sum(amounts.get(provider, 0) for amounts in after.values())
        usage -= sum(amounts.get(provider, 0) for amounts in before.values())
        named = any(provider in amounts for amounts in after.values())
        emptied = any(provider in before[uuid] and not after[uuid] for uuid in before)
        effects[provider] = (usage, int(not unchecked and (named or emptied)))
    return effects


class _Caller:
    """Sends requests, on a new connection every now and then, so that all workers take part."""

    def __init__(self, load, seed):
        self.load = load
        self.chance = random.Random(seed)
        self.client = None
        self.left = 0

    def send(self, method, path, body=None, headers=None):
        """The answer; None if it got lost or says that the database is away."""
        if self.left == 0:
            self.close()
            self.client = client_of(self.chance.choice(self.load.urls))
            self.left = REQUESTS_A_CONNECTION
        self.left -= 1
        try:
            answer = self.client.request(method, path, json=body, headers=headers)
        except httpx.HTTPError:
            self.left = 0
            self.load.count("lost")
            self.load.stop.wait(0.05)
            return None
        if answer.status_code == 503:
            self.load.count("unavailable")
            if "retry-after" not in answer.headers or not answer.json()["errors"][0]["detail"]:
                self.load.problems.append((method, path, answer.headers, answer.text))
            self.load.stop.wait(0.05)
            return None
        return answer

    def close(self):
        if self.client is not None:
            self.client.close()

    def act(self):
        raise NotImplementedError

    def run(self):
        try:
            while not self.load.stop.is_set():
                self.act()
        except Exception as error:
            self.load.problems.append(error)
            raise
        finally:
            self.close()
            self.finish()

    def finish(self):
        """Hand over what is known in the end."""


class _Reader(_Caller):
    """Reads usages, who holds them, and candidates; nothing may ever be above capacity."""

    def act(self):
        self.chance.choice([self._usages, *[self._listing] * 4, self._candidates])()
        self.load.stop.wait(0.01)

    def _ask(self, path):
        """Return the times of request and response, and the response; None if there was none."""
        start = time.monotonic()
        answer = self.send("GET", path)
        end = time.monotonic()
        if answer is not None and answer.status_code != 200:
            self.load.problems.append((path, answer.status_code, answer.text))
            answer = None
        return start, end, None if answer is None else answer.json()

    def _saw(self, provider, step):
        if step.usage > self.load.world.capacity(provider):
            self.load.problems.append(("over capacity", provider, step))
        self.load.saw(provider, step)
        self.load.count("read")

    def _usages(self):
        world = self.load.world
        provider = self.chance.choice(list(world.classes))
        start, end, seen = self._ask(f"/resource_providers/{provider}/usages")
        if seen is not None:
            usage = seen["usages"][world.classes[provider]]
            generation = seen["resource_provider_generation"]
            self._saw(provider, Step("read", start, end, usage, generation))

    def _listing(self):
        provider = self.chance.choice(list(self.load.world.classes))
        start, end, seen = self._ask(f"/resource_providers/{provider}/allocations")
        if seen is None:
            return
        holders = seen["allocations"]
        usage = sum(sum(holder["resources"].values()) for holder in holders.values())
        numbers = {uuid: holder["consumer_generation"] for uuid, holder in holders.items()}
        generation = seen["resource_provider_generation"]
        self._saw(provider, Step("read", start, end, usage, generation, numbers))

    def _candidates(self):
        """Reads that are answered from the worker's inventory in memory."""
        world = self.load.world
        name = self.chance.choice(sorted(set(world.classes.values())))
        start, end, seen = self._ask(f"/allocation_candidates?resources={name}:1")
        for provider, summary in (seen["provider_summaries"] if seen else {}).items():
            # There may be providers of others.
            if provider in world.classes:
                usage = summary["resources"][world.classes[provider]]["used"]
                self._saw(provider, Step("read", start, end, usage, None))


class _Client(_Caller, Placing):
    """Claims for consumers of its own."""

    def __init__(self, load, seed):
        super().__init__(load, seed)
        self.known = {}

    def act(self):
        actions = [self._claim, self.place]
        if self.known:
            actions += [self._resize, self._resize, self._move, self._delete, self._read]
        if len(self.known) > 3:
            actions = [self._delete, self._move]
        self.chance.choice(actions)()

    def finish(self):
        self.load.known |= self.known

    def _amounts(self):
        world = self.load.world
        amounts = {self.chance.choice(world.hosts): self.chance.randint(1, 7)}
        if self.chance.random() < 0.6:
            amounts[world.pool] = self.chance.randint(1, 12)
        return amounts

    def _claim(self):
        self._put(str(uuid.uuid4()), self._amounts())

    def _resize(self):
        consumer = self.chance.choice(list(self.known))
        amounts = self.known[consumer].amounts
        smaller = {provider: max(1, amount // 2) for provider, amount in amounts.items()}
        # An operation without a change could not be distinguished from one that did not happen.
        self._put(consumer, smaller if smaller != amounts else {})

    def _put(self, consumer, amounts):
        self._write("PUT", f"/allocations/{consumer}", {consumer: amounts})

    def _move(self):
        """Hand the allocations of a consumer to another one, as a migration does."""
        consumer = self.chance.choice(list(self.known))
        other = str(uuid.uuid4())
        after = {consumer: {}, other: self._amounts()}
        if self.chance.random() < 0.5:
            after = {consumer: self._amounts(), other: self.known[consumer].amounts}
        if after[consumer] != self.known[consumer].amounts:
            self._write("POST", "/allocations", after)

    def _delete(self):
        consumer = self.chance.choice(list(self.known))
        if self.chance.random() < 0.5:
            self._write("DELETE", f"/allocations/{consumer}", {consumer: {}})
        else:
            self._put(consumer, {})

    def keep_placed(self, placed):
        """Take over consumers that are placed."""
        self.known |= {uuid: KnownAllocations(amounts, 1) for uuid, amounts in placed.items()}

    def _read(self):
        consumer = self.chance.choice(list(self.known))
        answer = self.send("GET", f"/allocations/{consumer}")
        if answer is None:
            return
        if answer.status_code != 200:
            self.load.problems.append((answer.status_code, answer.text))
            return
        document = answer.json()
        shown = KnownAllocations(amounts_of(document), document.get("consumer_generation"))
        if shown != self.known[consumer]:
            self.load.problems.append(("not as promised", self.known[consumer], document))

    def _write(self, method, path, after):
        body = {consumer: self._body(consumer, amounts) for consumer, amounts in after.items()}
        if method != "POST":
            body = body[next(iter(after))] if method == "PUT" else None
        start = time.monotonic()
        answer = self.send(method, path, body)
        end = time.monotonic()
        write = self._doubt(start, after, unchecked=method == "DELETE")
        if answer is None:
            for consumer in after:
                self.known.pop(consumer, None)
            self.load.doubts.append(write)
        elif answer.status_code == 204:
            self.load.count("success")
            self.load.succeeded(write, end)
            for consumer, amounts in after.items():
                self._keep(consumer, amounts)
        else:
            self._refused(answer, write, end)

    def _doubt(self, start, after, *, unchecked):
        """A write that may have happened."""
        present = {consumer: self.known.get(consumer, KnownAllocations()) for consumer in after}
        before = {consumer: known.amounts for consumer, known in present.items()}
        numbers = {consumer: (known.generation or 0) + 1 for consumer, known in present.items()}
        return Doubt(start, before, after, unchecked, numbers)

    def _body(self, consumer, amounts):
        classes = self.load.world.classes
        return claim_of(
            {
                provider: {"resources": {classes[provider]: amount}}
                for provider, amount in amounts.items()
            },
            project_id="project",
            user_id="user",
            consumer_generation=self.known.get(consumer, KnownAllocations()).generation,
        )

    def _keep(self, consumer, amounts):
        generation = self.known.get(consumer, KnownAllocations()).generation
        self.known.pop(consumer, None)
        if amounts:
            self.known[consumer] = KnownAllocations(amounts, (generation or 0) + 1)

    def _refused(self, answer, doubt, end):
        """Only a lack of room, and endless meetings with others, may refuse such a claim."""
        provider = _REFUSED.search(answer.text)
        if answer.status_code == 409 and provider:
            self.load.count("refused")
            effects = effects_of(doubt.before, doubt.after, unchecked=False)
            uuid = provider.group(1)
            self.load.saw(uuid, Step("refusal", doubt.start, end, effects[uuid][0]))
        elif answer.status_code == 409 and "placement.concurrent_update" in answer.text:
            if "Inventory and/or allocations changed" in answer.text:
                self.load.count("conflict")
            else:
                self.load.problems.append((doubt, answer.text))
        else:
            self.load.problems.append((answer.status_code, answer.text, doubt))
