# SPDX-License-Identifier: Apache-2.0
"""Clients that ask the worst questions known, others that ask ordinary ones, and a watch over memory.

Hostile clients ask for packings that nearly fit, divisions with very many sets, explanations of 250 groups and
answers without end, half of them always anew.
"""

import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from typing import Any, Self

import httpx
import psutil

from tests.clouds import World, WorldMaker

_HEADERS = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": "placement 1.39, treeclaim 1.0",
    "Accept": "application/json",
}
_TIMEOUT = 120.0
_BROKEN = 0
"""Stands for a connection that broke within an answer."""

_LOOK_SECONDS = 0.1
_ENOUGH_BYTES = 50_000_000
"""Bytes of an endless response that a hostile client reads before it hangs up."""


def world(hosts: int) -> World:
    """Ordinary hosts, and some trees that hard questions can be asked about."""
    maker = WorldMaker(5)
    for number in range(hosts):
        maker.add(f"host-{number}", {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000})
    odd = maker.add("odd", {"PGPU": 8})
    for number in range(24):
        maker.add(f"odd-{number}", {"VGPU": 99}, odd)
    wide = maker.add("wide", {"PGPU": 8})
    for number in range(60):
        maker.add(f"wide-{number}", {"FPGA": 50 + number}, wide)
    return World(f"{hosts} hosts", maker.providers, "resources=VCPU:1,MEMORY_MB:512", (10,))


def packing(variant: int) -> str:
    """Even amounts that do not fill odd rooms: counting does not show it."""
    amounts = [18 + 2 * (number % 15) for number in range(73)]
    amounts[variant % 73] += 2
    amounts.append(24 * 98 + 2 - sum(amounts))
    groups = "&".join(
        f"resources{number}=VGPU:{amount}" for number, amount in enumerate(amounts, 1)
    )
    return f"/allocation_candidates?{groups}&group_policy=none&limit=1"


def division(variant: int) -> str:
    """An amount that no few children have: very many minimal sets."""
    return f"/allocation_candidates?resources=FPGA:{1500 + variant % 500}&can_split=FPGA"


def explanation(variant: int) -> str:
    """Many groups, and each of them is searched for alone and with others."""
    wanted = [f"resources{number}=VGPU:{1 + (number + variant) % 97}" for number in range(250)]
    return f"/allocation_candidates/explain?{'&'.join(wanted)}&group_policy=none"


def endless(variant: int) -> str:
    """Sixty children for each of six groups."""
    wanted = [f"resources{number}=FPGA:{1 + variant % 9}" for number in range(6)]
    return f"/allocation_candidates?{'&'.join(wanted)}&group_policy=none"


HOSTILE: Sequence[Callable[[int], str]] = (packing, division, explanation, endless)


@dataclass(slots=True)
class Outcome:
    """The responses of some clients.

    Attributes:
        statuses: How often each; 0 for answers that broke off.
        seconds: How long each took.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def note(self, status: int, seconds: float) -> None:
        """Add an answer."""
        self.statuses[status] += 1
        self.seconds.append(seconds)

    def percentile(self, share: float) -> float:
        """Return the seconds that a share of all answers did not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


@dataclass(frozen=True, slots=True)
class Signals:
    """The messages to and from the process of the hostile clients.

    Attributes:
        begun: Set when they ask.
        ended: Set when they are to end.
        results: Where statuses and seconds go then.
    """

    begun: Event
    ended: Event
    results: Any


def attack(url: str, kinds: Sequence[int], clients: int, signals: Signals) -> None:
    """Ask hard questions until told to stop; runs in a process of its own."""
    outcome = Outcome()
    lock = threading.Lock()

    def work(number: int) -> None:
        for status, seconds in _attacker(url, kinds, number, signals.ended):
            with lock:
                outcome.note(status, seconds)

    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    signals.begun.set()
    signals.ended.wait()
    for thread in threads:
        thread.join(1)
    with lock:
        signals.results.put((dict(outcome.statuses), outcome.seconds))


def _attacker(
    url: str, kinds: Sequence[int], number: int, ended: Event
) -> Iterator[tuple[int, float]]:
    """Yield the status of each answer, and the seconds that it took."""
    random_source = random.Random(number)
    with httpx.Client(base_url=url, headers=_HEADERS, timeout=_TIMEOUT) as client:
        while not ended.is_set():
            # Half of them ask the same again and again.
            variant = 0 if number % 2 else random_source.randrange(10_000)
            path = HOSTILE[random_source.choice(kinds)](variant)
            begin = time.perf_counter()
            status = _read(client, path)
            yield status, time.perf_counter() - begin


def _read(client: httpx.Client, path: str) -> int:
    size = 0
    try:
        with client.stream("GET", path) as answer:
            for piece in answer.iter_raw():
                size += len(piece)
                if size > _ENOUGH_BYTES:
                    break
            return answer.status_code
    except httpx.HTTPError:
        return _BROKEN


def innocent_questions(some: World) -> list[str]:
    """Return what ordinary clients ask."""
    uuids = [provider.uuid for provider in some.providers[:50]]
    return [
        *(f"/allocation_candidates?{some.question(number)}&limit=100" for number in range(50)),
        *(f"/resource_providers/{uuid}" for uuid in uuids),
        *(f"/resource_providers/{uuid}/inventories" for uuid in uuids),
        *(f"/resource_providers?name={provider.name}" for provider in some.providers[:50]),
        "/",
    ]


def ask(url: str, paths: Sequence[str], clients: int, seconds: float, pause: float) -> Outcome:
    """Let ordinary clients ask for some time; they wait a little between questions."""
    outcome = Outcome()
    lock = threading.Lock()
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        chosen = random.Random(number)
        with httpx.Client(base_url=url, headers=_HEADERS, timeout=_TIMEOUT) as client:
            while time.monotonic() < end:
                begin = time.perf_counter()
                try:
                    status = client.get(chosen.choice(paths)).status_code
                except httpx.HTTPError:
                    status = _BROKEN
                with lock:
                    outcome.note(status, time.perf_counter() - begin)
                time.sleep(pause)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcome


class Memory:
    """Watches the memory of a server's processes, shared pages counted once."""

    def __init__(self, process: psutil.Process) -> None:
        self.most = 0
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self.most = max(self.most, proportional_bytes(self._process))


def proportional_bytes(process: psutil.Process) -> int:
    """Return the memory of a server and its children."""
    total = 0
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for one in family:
        try:
            total += one.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return total


@contextmanager
def attacked(url: str, clients: int, kinds: Sequence[int] = range(4)) -> Iterator[Outcome]:
    """Have hostile clients ask during a block; what they got is there afterwards."""
    context = multiprocessing.get_context("spawn")
    signals = Signals(context.Event(), context.Event(), context.SimpleQueue())
    process = context.Process(target=attack, args=(url, kinds, clients, signals), daemon=True)
    outcome = Outcome()
    process.start()
    try:
        signals.begun.wait(_TIMEOUT)
        yield outcome
    finally:
        signals.ended.set()
        statuses, seconds = signals.results.get()
        outcome.statuses.update(statuses)
        outcome.seconds.extend(seconds)
        process.kill()
        process.join()
