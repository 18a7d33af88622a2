# SPDX-License-Identifier: Apache-2.0
"""Many clients claim, place, move, shrink and give back at random, and remember what they were told.

A few hosts with VCPU, each with a hold that some claims draw from, and one shared pool with DISK_GB. Each client has consumers of its own, so it
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
from tests.faults.harness import holds
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
    """The providers: class and capacity by uuid, and the holds by host."""

    classes: dict
    pool: str
    holds: dict = field(default_factory=dict)

    @property
    def hosts(self):
        """All providers but the one that all share."""
        return [resource_class for resource_class in self.classes if resource_class != self.pool]

    def capacity(self, provider):
        """Return how many units a provider has."""
        return CAPACITY[self.classes[provider]]


def build(url, *, with_holds=True):
    """Create the providers through the API, and holds on the hosts."""
    classes = {str(uuid.uuid4()): "VCPU" for _ in range(HOSTS)}
    pool = str(uuid.uuid4())
    classes[pool] = "DISK_GB"
    with client_of(url) as client:
        for one, name in classes.items():
            add_hosts(client, one, **{name: CAPACITY[name]})
        hosts = (
            [resource_class for resource_class in classes if resource_class != pool]
            if with_holds
            else []
        )
        return World(classes, pool, holds.make_holds(client, hosts))


@dataclass(slots=True)
class KnownAllocations:
    """The allocations of a consumer, as far as its client knows."""

    amounts: dict = field(default_factory=dict)
    generation: int | None = None
    drawn: dict = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Doubt:
    """A write whose answer may get lost: what its consumers held before, and would hold after.

    `numbers` has which write of its life this is for each consumer, `drawn` what they have drawn
    afterwards, `back` what goes back to the holds, and `wanted` what is taken of them at most, each by
    provider. Nobody knows beforehand how much of that the hold has.
    """

    start: float
    before: dict
    after: dict
    unchecked: bool
    numbers: dict
    drawn: dict = field(default_factory=dict)
    back: dict = field(default_factory=dict)
    wanted: dict = field(default_factory=dict)


class Load:
    """A number of clients and readers, and all they saw."""

    def __init__(self, urls, world, seed=0):
        self.urls = urls
        self.world = world
        self.stop = threading.Event()
        self.problems = []
        self.steps = {resource_class: [] for resource_class in world.classes}
        self.doubts = []
        self.placings = []
        self.answers = Counter()
        self.kept = {}
        self.drawn = {}
        self._lock = threading.Lock()
        clients = [_Client(self, seed * 1000 + number) for number in range(CLIENTS)]
        readers = [_Reader(self, number) for number in range(READERS)]
        self.shapes = _Shaper(self)
        self.keeper = _Keeper(self)
        callers = (*clients, *readers, self.shapes, self.keeper)
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
            for consumer, held in self.kept.items():
                stored[consumer] = self._stored(client, consumer)
                assert stored[consumer] == held.amounts, (consumer, held, stored[consumer])
                assert self.drawn[consumer] == held.drawn, (consumer, held, self.drawn[consumer])
            for doubt in self.doubts:
                found = {one: self._stored(client, one) for one in doubt.before}
                assert found in (doubt.before, doubt.after), (doubt, found)
                stored |= found
                if found == doubt.after != doubt.before:
                    self.succeeded(doubt, FOREVER, {one: self.drawn[one] for one in doubt.before})
            for lost in self.placings:
                found = {consumer: self._stored(client, consumer) for consumer in lost.consumers}
                stored |= found
                if judge_lost(client, lost, found):
                    self.placed(lost, found, FOREVER)
            for shape in self.shapes.doubts:
                if self.shapes.is_there(client, shape):
                    self.saw(shape.provider, shape.step(FOREVER))
            for provider, name in self.world.classes.items():
                self._judge_provider(client, provider, name, stored)

    def _judge_provider(self, client, provider, name, stored):
        answer = body_of(client, f"/resource_providers/{provider}/usages")
        usage = answer["usages"][name]
        drawn = sum(one.get(provider, 0) for one in self.drawn.values())
        is_held = provider in self.world.holds
        held = self.keeper.judge(client, provider, drawn) if is_held else 0
        assert usage == held + sum(one.get(provider, 0) for one in stored.values())
        assert usage <= self.world.capacity(provider)
        now = time.monotonic()
        last = Step("read", now, now, usage, answer["resource_provider_generation"], seen=held)
        steps = [*self.steps[provider], last]
        first = State(holds.HELD, 2, holds.HELD) if is_held else State(generation=1)
        assert explained(steps, self.world.capacity(provider), first), (provider, steps)

    def _stored(self, client, consumer):
        answer = body_of(client, f"/allocations/{consumer}", headers=holds.VERSION)
        self.drawn[consumer] = holds.drawn_of(answer)
        return {
            provider: amount
            for provider, one in answer["allocations"].items()
            for amount in one["resources"].values()
        }

    def placed(self, call, found, end):
        """Remember what a placement did: one write of all its consumers."""
        nothing = {one: {} for one in found}
        numbers = dict.fromkeys(found, 1)
        write = Doubt(call.start, nothing, found, unchecked=False, numbers=numbers)
        self.succeeded(write, end, {one: {} for one in found})

    def succeeded(self, write, end, drawn):
        """Remember what a write did to each provider; after it, consumers have drawn so much."""
        effects = effects_of(write.before, write.after, unchecked=write.unchecked)
        for provider, (usage, generation) in effects.items():
            consumers = {
                one: (write.numbers[one], provider in write.after[one])
                for one in write.after
                if provider in write.before[one] or provider in write.after[one]
            }
            held = write.back.get(provider, 0)
            for one in drawn:
                held -= drawn[one].get(provider, 0) - write.drawn.get(one, {}).get(provider, 0)
            answer = write.wanted.get(provider)
            step = Step(
                "success", write.start, end, usage + held, generation, consumers, held, answer
            )
            self.saw(provider, step)


def effects_of(before, after, *, unchecked):
    """Return the change of usage and generation of each provider by a write (page 70, section 1.2)."""
    providers = {amount for amounts in (*before.values(), *after.values()) for amount in amounts}
    effects = {}
    for provider in providers:
        usage = sum(one.get(provider, 0) for one in after.values())
        usage -= sum(one.get(provider, 0) for one in before.values())
        named = any(provider in one for one in after.values())
        emptied = any(provider in before[one] and not after[one] for one in before)
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
        # Others than who draws do not know how often a hold was written.
        hold = self.load.world.holds.get(provider)
        held = sum(holders.pop(hold, {"resources": {}})["resources"].values())
        numbers = {uuid: one["consumer_generation"] for uuid, one in holders.items()}
        generation = seen["resource_provider_generation"]
        self._saw(provider, Step("read", start, end, usage, generation, numbers, seen=held))

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


class _Keeper(_Caller, holds.Keeping):
    """Writes the holds, as who owns them does."""

    def __init__(self, load):
        super().__init__(load, 0)
        self.doubts = {}
        self.totals = dict.fromkeys(load.world.holds, holds.HELD)

    def act(self):
        self.load.stop.wait(0.02)
        left = sorted(self.totals.keys() - self.doubts.keys())
        if left:
            self.chance.choice([self.keep, self.keep, self.change_terms])(self.chance.choice(left))


class _Shaper(_Caller):
    """Changes what an inventory says, but not how much it lends, as an operator or an agent does.

    Each change has a number of its own, so it can be found out whether one happened whose answer
    got lost; its provider is then left alone.
    """

    def __init__(self, load):
        super().__init__(load, 0)
        self.doubts = []
        self._numbers = iter(range(1, 1_000_000))

    def act(self):
        self.load.stop.wait(0.02)
        world = self.load.world
        left = sorted(world.classes.keys() - {doubt.provider for doubt in self.doubts})
        if not left:
            return
        provider = self.chance.choice(left)
        path = f"/resource_providers/{provider}/inventories"
        present = self.send("GET", path)
        if present is None or present.status_code != 200:
            return
        change = Shape(provider, world.classes[provider], next(self._numbers), time.monotonic())
        answer = self.send("PUT", path, change.body(present.json(), world.capacity(provider)))
        if answer is None:
            self.doubts.append(change)
        elif answer.status_code == 200:
            self.load.count("reshaped")
            self.load.saw(provider, change.step(time.monotonic()))
        elif answer.status_code != 409 or "placement.concurrent_update" not in answer.text:
            self.load.problems.append((answer.status_code, answer.text, change))

    @staticmethod
    def is_there(client, change):
        """Return whether a change is stored."""
        path = f"/resource_providers/{change.provider}/inventories/{change.name}"
        return body_of(client, path)["max_unit"] == change.max_unit


@dataclass(frozen=True, slots=True)
class Shape:
    """A change of an inventory: a most that no claim reaches."""

    provider: str
    name: str
    number: int
    start: float

    @property
    def max_unit(self):
        """A number that only this change writes."""
        return 1_000_000 + self.number

    def body(self, present, total):
        """Return the body that the change writes."""
        return {
            "inventories": {self.name: {"total": total, "max_unit": self.max_unit}},
            "resource_provider_generation": present["resource_provider_generation"],
        }

    def step(self, end):
        """Return the effect on the provider."""
        return Step("success", self.start, end, 0, 1)


class _Client(_Caller, Placing):
    """Claims for consumers of its own."""

    def __init__(self, load, seed):
        super().__init__(load, seed)
        self.held = {}

    def act(self):
        actions = [self._claim, self.place]
        if self.held:
            actions += [self._resize, self._resize, self._move, self._delete, self._read]
        if len(self.held) > 3:
            actions = [self._delete, self._move]
        self.chance.choice(actions)()

    def finish(self):
        self.load.kept |= self.held

    def _amounts(self):
        world = self.load.world
        amounts = {self.chance.choice(world.hosts): self.chance.randint(1, 7)}
        if self.chance.random() < 0.6:
            amounts[world.pool] = self.chance.randint(1, 12)
        return amounts

    def _claim(self):
        amounts = self._amounts()
        sources = [hold for host, hold in self.load.world.holds.items() if host in amounts]
        draws = sources and self.chance.random() < 0.5
        self._put(str(uuid.uuid4()), amounts, sources if draws else ())

    def _resize(self):
        consumer = self.chance.choice(list(self.held))
        amounts = self.held[consumer].amounts
        smaller = {amount: max(1, amounts[amount] // 2) for amount in amounts}
        # What changes nothing could not be told from what did not happen.
        self._put(consumer, smaller if smaller != amounts else {})

    def _put(self, consumer, amounts, sources=()):
        self._write("PUT", f"/allocations/{consumer}", {consumer: amounts}, sources)

    def _move(self):
        """Hand the allocations of a consumer to another one, as a migration does."""
        consumer = self.chance.choice(list(self.held))
        other = str(uuid.uuid4())
        after = {consumer: {}, other: self._amounts()}
        if self.chance.random() < 0.5:
            after = {consumer: self._amounts(), other: self.held[consumer].amounts}
        if after[consumer] != self.held[consumer].amounts:
            self._write("POST", "/allocations", after)

    def _delete(self):
        consumer = self.chance.choice(list(self.held))
        if self.chance.random() < 0.5:
            self._write("DELETE", f"/allocations/{consumer}", {consumer: {}})
        else:
            self._put(consumer, {})

    def keep_placed(self, found):
        """Take over consumers that are placed."""
        self.held |= {one: KnownAllocations(amounts, 1) for one, amounts in found.items()}

    def _read(self):
        consumer = self.chance.choice(list(self.held))
        answer = self.send("GET", f"/allocations/{consumer}", headers=holds.VERSION)
        if answer is not None and answer.status_code != 200:
            self.load.problems.append((answer.status_code, answer.text))
        elif answer is not None:
            body = answer.json()
            held = self.held[consumer]
            amounts = {
                one: next(iter(part["resources"].values()))
                for one, part in body["allocations"].items()
            }
            result = KnownAllocations(
                amounts, body.get("consumer_generation"), holds.drawn_of(body)
            )
            if result != held:
                self.load.problems.append(("not as promised", consumer, held, body))

    def _write(self, method, path, after, sources=()):
        body = {one: self._body(one, amounts) for one, amounts in after.items()}
        if method != "POST":
            body = body[next(iter(after))] if method == "PUT" else None
        if sources:
            body["from_holds"] = sources
        start = time.monotonic()
        answer = self.send(method, path, body, holds.VERSION if sources else None)
        end = time.monotonic()
        doubt = self._doubt(start, after, sources, unchecked=method == "DELETE")
        drawn = doubt.drawn
        if sources and answer is not None and answer.status_code == 204:
            drawn = self._drawn(next(iter(after)))
        if answer is None or drawn is None:
            for one in after:
                self.held.pop(one, None)
            self.load.doubts.append(doubt)
        elif answer.status_code == 204:
            self.load.count("success")
            self.load.succeeded(doubt, end, drawn)
            for one, amounts in after.items():
                self._keep(one, amounts, drawn[one])
        else:
            self._refused(answer, doubt, end)

    def _doubt(self, start, after, sources, *, unchecked):
        """A write that may have happened."""
        present = {one: self.held.get(one, KnownAllocations()) for one in after}
        before = {one: held.amounts for one, held in present.items()}
        numbers = {one: (held.generation or 0) + 1 for one, held in present.items()}
        drawn, back = holds.passed_on(
            before, after, {one: held.drawn for one, held in present.items()}
        )
        # Only new consumers name holds.
        wanted = {
            host: amount
            for amounts in after.values()
            for host, amount in amounts.items()
            if sources and host in self.load.world.holds
        }
        return Doubt(start, before, after, unchecked, numbers, drawn, back, wanted)

    def _drawn(self, consumer):
        """Return the drawn amounts of a consumer; None if the response got lost."""
        answer = self.send("GET", f"/allocations/{consumer}", headers=holds.VERSION)
        if answer is None:
            return None
        drawn = holds.drawn_of(answer.json())
        self.load.count("drawn" if drawn else "not drawn")
        return {consumer: drawn}

    def _body(self, consumer, amounts):
        classes = self.load.world.classes
        return claim_of(
            {one: {"resources": {classes[one]: amount}} for one, amount in amounts.items()},
            project_id="project",
            user_id="user",
            consumer_generation=self.held.get(consumer, KnownAllocations()).generation,
        )

    def _keep(self, consumer, amounts, drawn):
        generation = self.held.get(consumer, KnownAllocations()).generation
        self.held.pop(consumer, None)
        if amounts:
            self.held[consumer] = KnownAllocations(amounts, (generation or 0) + 1, drawn)

    def _refused(self, answer, doubt, end):
        """Only a lack of room, and endless meetings with others, may refuse such a claim."""
        provider = _REFUSED.search(answer.text)
        if answer.status_code == 409 and provider:
            self.load.count("refused")
            effects = effects_of(doubt.before, doubt.after, unchecked=False)
            host = provider.group(1)
            usage = effects[host][0] + doubt.back.get(host, 0)
            wanted = doubt.wanted.get(host)
            step = Step("refusal", doubt.start, end, usage, wanted=wanted)
            self.load.saw(host, step)
        elif answer.status_code == 409 and "placement.concurrent_update" in answer.text:
            if "Inventory and/or allocations changed" in answer.text:
                self.load.count("conflict")
            else:
                self.load.problems.append((doubt, answer.text))
        else:
            self.load.problems.append((answer.status_code, answer.text, doubt))
