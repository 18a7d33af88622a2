# SPDX-License-Identifier: Apache-2.0
"""The clients and readers of a load; each client tracks its own consumers.

A client also places consumers, and repeats a call whose answer was lost (contract page 98, section 4).
"""

import random
import re
import time
import uuid
from dataclasses import dataclass, field

import httpx

from tests.bodies import claim_of, wanted_by
from tests.faults.harness.linearizability import Step
from tests.faults.harness.service import body_of, client_of

REQUESTS_A_CONNECTION = 8
MOST_CALLS = 3
VERSION = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
PATH = "/treeclaim/placements"
_REFUSALS = ("treeclaim.unplaced", "placement.concurrent_update")
_REFUSED = re.compile(r"on resource provider '([0-9a-f-]+)'\. The requested amount would exceed")


@dataclass(slots=True)
class KnownAllocations:
    """The allocations of a consumer, as far as its client knows."""

    amounts: dict = field(default_factory=dict)
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A write whose answer may get lost: the allocations of its consumers before and after.

    `numbers` counts the writes of each consumer.
    """

    start: float
    before: dict
    after: dict
    unchecked: bool
    numbers: dict


@dataclass(frozen=True, slots=True)
class LostPlacing:
    """A placement with an unknown outcome: nothing, or all of it.

    `amount` is what each consumer was to get, all on different hosts.
    """

    start: float
    body: dict
    amount: int

    @property
    def consumers(self):
        return self.body["requests"][0]["consumers"]


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
        is_named = any(provider in amounts for amounts in after.values())
        is_emptied = any(provider in before[uuid] and not after[uuid] for uuid in before)
        effects[provider] = (usage, int(not unchecked and (is_named or is_emptied)))
    return effects


class Caller:
    """Sends requests, on a new connection every now and then, so that all workers take part."""

    def __init__(self, load, seed):
        self.load = load
        self.chance = random.Random(seed)
        self.known_allocations = {}
        self.client = None
        self.remaining_requests = 0

    def send(self, method, path, body=None, headers=None):
        """The answer; None if it got lost or says that the database is away."""
        if self.remaining_requests == 0:
            self.close()
            self.client = client_of(self.load.url)
            self.remaining_requests = REQUESTS_A_CONNECTION
        self.remaining_requests -= 1
        try:
            answer = self.client.request(method, path, json=body, headers=headers)
        except httpx.HTTPError:
            self.remaining_requests = 0
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

    def _ask(self, path):
        """Return the times of request and response, and the response; None if there was none."""
        start = time.monotonic()
        answer = self.send("GET", path)
        end = time.monotonic()
        if answer is not None and answer.status_code != 200:
            self.load.problems.append((path, answer.status_code, answer.text))
            answer = None
        return start, end, None if answer is None else answer.json()

    def close(self):
        if self.client is not None:
            self.client.close()

    def act(self):
        """Make a random call."""
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


class Reader(Caller):
    """Reads usages, allocations and candidates, and checks that no usage is above capacity."""

    def act(self):
        self.chance.choice([self._usages, *[self._listing] * 4, self._candidates])()
        self.load.stop.wait(0.01)

    def _saw(self, provider, step):
        if step.usage > self.load.world.capacity(provider):
            self.load.problems.append(("over capacity", provider, step))
        self.load.saw(provider, step)
        self.load.count("read")

    def _usages(self):
        world = self.load.world
        provider = self.chance.choice(list(world.classes))
        start, end, document = self._ask(f"/resource_providers/{provider}/usages")
        if document is not None:
            usage = document["usages"][world.classes[provider]]
            generation = document["resource_provider_generation"]
            self._saw(provider, Step("read", start, end, usage, generation))

    def _listing(self):
        provider = self.chance.choice(list(self.load.world.classes))
        start, end, document = self._ask(f"/resource_providers/{provider}/allocations")
        if document is None:
            return
        holders = document["allocations"]
        usage = sum(sum(holder["resources"].values()) for holder in holders.values())
        numbers = {uuid: holder["consumer_generation"] for uuid, holder in holders.items()}
        generation = document["resource_provider_generation"]
        self._saw(provider, Step("read", start, end, usage, generation, numbers))

    def _candidates(self):
        """Reads that are answered from the worker's inventory in memory."""
        world = self.load.world
        name = self.chance.choice(sorted(set(world.classes.values())))
        start, end, document = self._ask(f"/allocation_candidates?resources={name}:1")
        for provider, summary in (document["provider_summaries"] if document else {}).items():
            # There may be providers of others.
            if provider in world.classes:
                usage = summary["resources"][world.classes[provider]]["used"]
                self._saw(provider, Step("read", start, end, usage, None))


class Client(Caller):
    """Claims for consumers of its own."""

    def act(self):
        actions = [self._claim, self._place]
        if self.known_allocations:
            actions += [self._resize, self._resize, self._move, self._delete, self._read]
        if len(self.known_allocations) > 3:
            actions = [self._delete, self._move]
        self.chance.choice(actions)()

    def _amounts(self):
        world = self.load.world
        amounts = {self.chance.choice(world.hosts): self.chance.randint(1, 7)}
        if self.chance.random() < 0.6:
            amounts[world.pool] = self.chance.randint(1, 12)
        return amounts

    def _claim(self):
        self._put(str(uuid.uuid4()), self._amounts())

    def _resize(self):
        consumer = self.chance.choice(list(self.known_allocations))
        amounts = self.known_allocations[consumer].amounts
        smaller = {provider: max(1, amount // 2) for provider, amount in amounts.items()}
        # An operation without a change could not be distinguished from one that did not happen.
        self._put(consumer, smaller if smaller != amounts else {})

    def _put(self, consumer, amounts):
        self._write("PUT", f"/allocations/{consumer}", {consumer: amounts})

    def _move(self):
        """Hand the allocations of a consumer to another one, as a migration does."""
        consumer = self.chance.choice(list(self.known_allocations))
        other = str(uuid.uuid4())
        after = {consumer: {}, other: self._amounts()}
        if self.chance.random() < 0.5:
            after = {consumer: self._amounts(), other: self.known_allocations[consumer].amounts}
        if after[consumer] != self.known_allocations[consumer].amounts:
            self._write("POST", "/allocations", after)

    def _delete(self):
        consumer = self.chance.choice(list(self.known_allocations))
        if self.chance.random() < 0.5:
            self._write("DELETE", f"/allocations/{consumer}", {consumer: {}})
        else:
            self._put(consumer, {})

    def _place(self):
        """Place some consumers on different hosts; repeat the same call while answers get lost."""
        amount = self.chance.randint(1, 7)
        most = self.chance.choice([1, len(self.load.world.hosts)])
        body = _placing(amount, self.chance.randint(1, most))
        start = time.monotonic()
        answer, calls = None, 0
        while answer is None and calls < MOST_CALLS:
            answer = self.send("POST", PATH, body, VERSION)
            calls += 1
        end = time.monotonic()
        lost = LostPlacing(start, body, amount)
        if answer is None:
            self.load.placings.append(lost)
        elif answer.status_code in {200, 201}:
            self._placed(lost, answer.json(), end)
        elif answer.status_code != 409 or not any(code in answer.text for code in _REFUSALS):
            self.load.problems.append((answer.status_code, answer.text, body))
        else:
            self.load.count("unplaced")
            if calls > 1:
                # An earlier call may be under way still, and come true.
                self.load.placings.append(lost)

    def _placed(self, lost, document, end):
        result = amounts_told(document)
        if not is_whole(lost, result):
            self.load.problems.append(("not what was asked for", lost, document))
            return
        self.load.count("success")
        self.load.count("placed")
        self.load.placed(lost, result, end)
        self.known_allocations |= {
            uuid: KnownAllocations(amounts, 1) for uuid, amounts in result.items()
        }

    def _read(self):
        consumer = self.chance.choice(list(self.known_allocations))
        _, _, document = self._ask(f"/allocations/{consumer}")
        if document is not None:
            shown_allocations = KnownAllocations(
                amounts_of(document), document.get("consumer_generation")
            )
            if shown_allocations != self.known_allocations[consumer]:
                self.load.problems.append(
                    ("not as promised", self.known_allocations[consumer], document)
                )

    def _write(self, method, path, after):
        former_allocations = {
            consumer: self.known_allocations.pop(consumer, KnownAllocations())
            for consumer in after
        }
        bodies = {
            uuid: self._body(amounts, former_allocations[uuid].generation)
            for uuid, amounts in after.items()
        }
        body = {"POST": bodies, "PUT": next(iter(bodies.values())), "DELETE": None}[method]
        start = time.monotonic()
        answer = self.send(method, path, body)
        end = time.monotonic()
        before = {consumer: former.amounts for consumer, former in former_allocations.items()}
        numbers = {
            consumer: (former.generation or 0) + 1
            for consumer, former in former_allocations.items()
        }
        write = Doubt(start, before, after, method == "DELETE", numbers)
        if answer is None:
            self.load.doubts.append(write)
        elif answer.status_code == 204:
            self.load.count("success")
            self.load.succeeded(write, end)
            self.known_allocations |= {
                consumer: KnownAllocations(amounts, numbers[consumer])
                for consumer, amounts in after.items()
                if amounts
            }
        else:
            self.known_allocations |= {
                uuid: former for uuid, former in former_allocations.items() if former.amounts
            }
            self._refused(answer, write, end)

    def _body(self, amounts, generation):
        classes = self.load.world.classes
        return claim_of(
            {
                provider: {"resources": {classes[provider]: amount}}
                for provider, amount in amounts.items()
            },
            project_id="project",
            user_id="user",
            consumer_generation=generation,
        )

    def _refused(self, answer, doubt, end):
        """Only a lack of room, and endless meetings with others, may refuse such a claim."""
        provider = _REFUSED.search(answer.text)
        if answer.status_code == 409 and provider:
            self.load.count("refused")
            effects = effects_of(doubt.before, doubt.after, unchecked=False)
            uuid = provider.group(1)
            self.load.saw(uuid, Step("refusal", doubt.start, end, effects[uuid][0]))
        elif answer.status_code == 409 and "Inventory and/or allocations changed" in answer.text:
            self.load.count("conflict")
        else:
            self.load.problems.append((answer.status_code, answer.text, doubt))


def _placing(amount, count):
    request = wanted_by(
        [str(uuid.uuid4()) for _ in range(count)],
        f"resources=VCPU:{amount}&order_by=spread",
        project_id="project",
        user_id="user",
    )
    # Without a rule, a single consumer is placed together with those of other calls.
    rules = [{"domains": "tree", "max_per_domain": 1}] if count > 1 else []
    return {"requests": [request], "rules": rules}


def amounts_told(document):
    """Return the allocations of each consumer of a response: amounts by provider."""
    return {
        placement["consumer"]: {
            provider: part["resources"]["VCPU"]
            for provider, part in placement["allocations"].items()
        }
        for placement in document["placements"]
    }


def is_whole(lost, allocations):
    """Return whether all consumers of a call have the requested amounts, on different hosts."""
    hosts = [host for amounts in allocations.values() for host in amounts]
    return (
        list(allocations) == lost.consumers
        and all(list(amounts.values()) == [lost.amount] for amounts in allocations.values())
        and len(set(hosts)) == len(hosts)
    )


def judge_lost(client, lost, allocations):
    """Check that nothing is half placed, and that a repeated call returns the earlier placement.

    Args:
        client: Client of the service.
        lost: The call.
        allocations: Amounts of its consumers by provider.
    """
    placed = {consumer: amounts for consumer, amounts in allocations.items() if amounts}
    assert not placed or is_whole(lost, placed), (lost, allocations)
    if placed:
        again = body_of(client, PATH, method="POST", json=lost.body, headers=VERSION)
        assert amounts_told(again) == placed
    return bool(placed)
