# SPDX-License-Identifier: Apache-2.0
"""Placing, counting and ordered searches: the cases, each with its world."""

import itertools
import random
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import orjson
from rich.console import Console

from bench.clients.endpoint import EXTENDED, OURS, PEER, Endpoint, median
from bench.clients.loads import Step, claims, per_second
from bench.measuring.loading import serving
from bench.measuring.row import Comparison, Row
from tests.clouds import World, WorldMaker, flat
from tests.databases import KINDS
from tests.service import HEADERS

_CONSUMERS = 1_000
_CLIENTS = 16
_FLAVORS = 50
_FOUND = 1_000
"""Candidates that Nova asks for."""

_SECONDS = 600.0
_APART = {"domains": "tree", "max_per_domain": 1}
_QUIET = "without batches"
_FLAVOR = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:10"

BATCH = "1,000 placed on 10,000 hosts, spread, 1 a tree"
MEANWHILE = "p99 of searches by 4 clients while 1,000 after 1,000 are placed, 10,000 hosts"
SINGLE = "one placement a call, 16 clients, 1,000 hosts"
ORDERED = "order_by=pack,near:_GPU:_NIC, nested 10,000 x 7, limit=10"
COUNTED = "capacity of 50 flavors after a claim, nested 10,000 x 7"

AGAINST_PAIRS = "against search and claim"
AGAINST_CLAIMS = "against bare claims"
AGAINST_NO_ORDER = "against no order"
AGAINST_WEIGHING = "against 1,000 to weigh"
AGAINST_SEARCHES = "against searches"


@dataclass(frozen=True, slots=True)
class Running:
    """The services on one world, each on a database of its own.

    Attributes:
        world: What they have.
        ours: This service, called with its extension.
        peer: The other service; None for no peer.
    """

    world: World
    ours: Endpoint
    peer: Endpoint | None

    @classmethod
    def at(cls, world: World, ours: Endpoint, peer: Endpoint | None) -> "Running":
        """Return running services by their endpoints."""
        return cls(world, Endpoint(OURS, ours.url, EXTENDED), peer)


def devices(trees: int, seed: int = 11) -> World:
    """Return trees of seven: a host, two NUMA nodes, a GPU and a NIC on each; some are busy."""
    maker = WorldMaker(seed)
    dice = random.Random(seed)
    for number in range(trees):
        root = maker.add(
            f"host-{number}", {"DISK_GB": 2_000}, used={"DISK_GB": dice.randint(1, 500)}
        )
        for node in range(2):
            name = f"host-{number}-numa{node}"
            busy = {"VCPU": dice.randint(1, 24), "MEMORY_MB": dice.randint(1, 65_536)}
            numa = maker.add(name, {"VCPU": 32, "MEMORY_MB": 131_072}, root, used=busy)
            taken = {"VGPU": dice.randint(1, 6)}
            maker.add(f"{name}-gpu", {"VGPU": 8}, numa, used=taken)
            maker.add(f"{name}-nic", {"SRIOV_NET_VF": 16}, numa)
    query = (
        "resources=DISK_GB:10&resources_GPU=VGPU:1&resources_NIC=SRIOV_NET_VF:1&group_policy=none"
    )
    return World(f"nested {trees} x 7", maker.providers, query, (10,))


def nova_places(peer: Endpoint, query: str, taken: set[str]) -> bool:
    """Place one consumer as Nova does: search, weigh, claim; return whether it was placed."""
    document = orjson.loads(peer.ask(query, _FOUND).body)
    summaries = document["provider_summaries"]

    def free(candidate: Mapping[str, Any]) -> float:
        (host,) = candidate["allocations"]
        parts = summaries[host]["resources"].values()
        return sum(1 - float(part["used"]) / float(part["capacity"]) for part in parts)

    others = (
        candidate
        for candidate in document["allocation_requests"]
        if not taken & set(candidate["allocations"])
    )
    best = max(others, key=free)
    taken.update(best["allocations"])
    return peer.take(best["allocations"])


def batch(running: Running, options: Namespace) -> Iterator[Comparison]:
    """Place a batch: one call, against a thousand searches and claims."""
    case = f"{BATCH}, {options.database}"

    def call() -> None:
        _require(running.ours.place(f"{_FLAVOR}&order_by=spread", _CONSUMERS, [_APART]))

    call()
    taken = _milliseconds(call, options.rounds)
    yield Comparison(Row(case, OURS, median_ms=taken))
    peer = running.peer
    if peer is None:
        return
    used: set[str] = set()

    def step() -> None:
        _require(nova_places(peer, _FLAVOR, used))

    step()
    ours = Row(f"{case}: {AGAINST_PAIRS}", OURS, median_ms=taken)
    theirs = Row(ours.case, PEER, median_ms=_CONSUMERS * _milliseconds(step, options.sample))
    note = f"{_CONSUMERS:,} x the median of {options.sample} searches with their claims"
    yield Comparison(ours, theirs, note)


def meanwhile(running: Running, options: Namespace) -> Iterator[Comparison]:
    """Search while batches are placed one after the other by the same worker."""
    case = f"{MEANWHILE}, {options.database}"
    world = running.world
    questions = [f"/allocation_candidates?{world.question(n)}&limit=10" for n in range(50)]
    ended = threading.Event()

    def place() -> None:
        while not ended.is_set():
            running.ours.place(f"{_FLAVOR}&order_by=spread", _CONSUMERS, [_APART])

    found = []
    for is_placed in (False, True):
        ended.clear()
        thread = threading.Thread(target=place)
        if is_placed:
            thread.start()
        seconds = sorted(_search(running.ours.url, questions, 4, options.rounds))
        ended.set()
        if is_placed:
            thread.join()
        found.append(1000 * seconds[min(int(0.99 * len(seconds)), len(seconds) - 1)])
    quiet, busy = Row(case, _QUIET, median_ms=found[0]), Row(case, OURS, median_ms=found[1])
    yield Comparison(busy, quiet, "p99 of the same searches before")


def _search(url: str, paths: Sequence[str], clients: int, seconds: float) -> Sequence[float]:
    """Let clients search for some time, with pauses; return the seconds of each response."""
    end = time.monotonic() + seconds

    def work(number: int) -> Sequence[float]:
        chosen, taken = random.Random(number), []
        headers = HEADERS | {"openstack-api-version": EXTENDED}
        with httpx.Client(base_url=url, headers=headers, timeout=_SECONDS) as client:
            while time.monotonic() < end:
                begin = time.perf_counter()
                client.get(chosen.choice(paths)).raise_for_status()
                taken.append(time.perf_counter() - begin)
                time.sleep(0.02)
        return taken

    with ThreadPoolExecutor(clients) as pool:
        return [each for taken in pool.map(work, range(clients)) for each in taken]


def single(running: Running, options: Namespace) -> Iterator[Comparison]:
    """Place one at a time by many clients: against bare claims of our own, and against pairs."""
    name = f"{SINGLE}, {options.database}"
    steps: dict[str, Step] = {
        "placements": lambda _: running.ours.place(f"{_FLAVOR}&order_by=spread", 1),
        "claims": claims(running.ours, running.world),
    }
    rates: dict[str, list[float]] = {kind: [] for kind in steps}
    for _ in range(options.rounds):
        for kind, step in steps.items():
            rates[kind].append(per_second(step, _CLIENTS, options.calls, _SECONDS))
    own = Row(f"{name}: {AGAINST_CLAIMS}", OURS, per_second=median(rates["placements"]))
    bare = Row(own.case, "bare claims", per_second=median(rates["claims"]))
    yield Comparison(own, bare, "claims of the same service, without a search")
    peer = running.peer
    if peer is None:
        return
    rate = per_second(
        lambda _: nova_places(peer, _FLAVOR, set()), _CLIENTS, 2 * options.sample, _SECONDS
    )
    ours = Row(f"{name}: {AGAINST_PAIRS}", OURS, per_second=own.per_second)
    yield Comparison(ours, Row(ours.case, PEER, per_second=rate), "")


def ordered(running: Running, options: Namespace) -> Iterator[Comparison]:
    """Ask for the ten best, against any ten of our own, and against all that Nova would weigh."""
    numbers = itertools.count(1)

    def search(order: str = "", limit: int = 10, service: Endpoint = running.ours) -> None:
        query = running.world.query.replace("DISK_GB:10", f"DISK_GB:{10 + next(numbers)}")
        service.ask(f"{query}{order}", limit)

    order = "&order_by=pack,near:_GPU:_NIC"
    search(order)
    plain: list[float] = []
    best: list[float] = []
    for _ in range(options.rounds):
        plain.append(_milliseconds(search, 10))
        best.append(_milliseconds(lambda: search(order), 10))
    own = Row(f"{ORDERED}: {AGAINST_NO_ORDER}", OURS, median_ms=median(best))
    unordered = Row(own.case, "without order", median_ms=median(plain))
    yield Comparison(own, unordered, "the same search of the same service without order_by")
    peer = running.peer
    if peer is not None:
        taken = _milliseconds(lambda: search("", _FOUND, peer), 1)
        ours = Row(f"{ORDERED}: {AGAINST_WEIGHING}", OURS, median_ms=own.median_ms)
        yield Comparison(ours, Row(ours.case, PEER, median_ms=taken), "one answer, not weighed")


def counted(running: Running, options: Namespace) -> Iterator[Comparison]:
    """Count how many of many flavors fit after each claim; a peer is searched for each flavor."""
    flavors = [
        f"resources_NODE=VCPU:{1 + number % 10},MEMORY_MB:{1024 * (1 + number // 5)}"
        for number in range(_FLAVORS)
    ]
    body = {"requests": {str(number): query for number, query in enumerate(flavors)}}
    nodes = [
        provider.uuid for provider in running.world.providers if "VCPU" in provider.inventories
    ]
    dice = random.Random(5)

    def after_a_claim() -> float:
        _require(running.ours.claim(dice.choice(nodes), {"VCPU": 1}))
        return _milliseconds(lambda: running.ours.post("/treeclaim/capacity", body), 1)

    after_a_claim()
    taken = median([after_a_claim() for _ in range(5 * options.rounds)])
    yield Comparison(Row(COUNTED, OURS, median_ms=taken))
    peer = running.peer
    if peer is None:
        return
    ours = Row(f"{COUNTED}: {AGAINST_SEARCHES}", OURS, median_ms=taken)
    theirs = Row(
        ours.case, PEER, median_ms=_FLAVORS * _milliseconds(lambda: peer.ask(flavors[0], None), 1)
    )
    note = f"{_FLAVORS} x one search for all candidates, which must then be added up"
    yield Comparison(ours, theirs, note)


def _milliseconds(call: Callable[[], object], times: int) -> float:
    """Return the median of how long some calls take."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return 1000 * median(seconds)


def _require(done: object) -> None:
    if not done:
        raise SystemExit("a consumer was not placed")


CASES: Sequence[tuple[Callable[[], World], Sequence[Any]]] = (
    (lambda: flat(10_000), (batch, meanwhile)),
    (lambda: flat(1_000), (single,)),
    (lambda: devices(10_000), (ordered, counted)),
)
"""Worlds, and what is measured on each."""

SEARCHES = (ordered, counted)
"""Read the picture in memory: the same whatever the database."""


def measure(options: Namespace, console: Console) -> Iterator[Comparison]:
    """Measure all cases, or those that a database matters for."""
    endpoint_names = (OURS,) if options.no_peer else (OURS, PEER)
    for make, wanted in CASES:
        kinds = [kind for kind in wanted if options.database == "sqlite" or kind not in SEARCHES]
        world = make()
        if not kinds or options.only not in world.name:
            continue
        console.print(f"Measuring {world.name}")
        with ExitStack() as stack:
            ours, *others = [
                stack.enter_context(
                    serving(name, world, options.database, workers=options.workers)
                )[0]
                for name in endpoint_names
            ]
            running = Running.at(world, ours, others[0] if others else None)
            for kind in kinds:
                yield from kind(running, options)


def names() -> Iterator[str]:
    """Yield the names of all cases, on all databases."""
    for kind in KINDS:
        yield from (f"{BATCH}, {kind}", f"{BATCH}, {kind}: {AGAINST_PAIRS}")
        yield f"{MEANWHILE}, {kind}"
        yield from (f"{SINGLE}, {kind}: {other}" for other in (AGAINST_CLAIMS, AGAINST_PAIRS))
    yield from (f"{ORDERED}: {other}" for other in (AGAINST_NO_ORDER, AGAINST_WEIGHING))
    yield from (COUNTED, f"{COUNTED}: {AGAINST_SEARCHES}")
