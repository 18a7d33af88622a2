# SPDX-License-Identifier: Apache-2.0
"""Reading a whole cloud in bulk, and searches beside a thousand watchers."""

import multiprocessing
import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.synchronize import Event
from urllib.parse import urlsplit

import httpx
import orjson

from bench.clients.endpoint import EXTENDED, OURS, PEER, Endpoint, median, percentile
from bench.measuring.loading import serving
from bench.measuring.row import Row
from bench.measuring.searches import orjson_ms
from tests.clouds import World, flat

_HOSTS = 10_000
_EVERYTHING = f"flat {_HOSTS}: everything"
_SAMPLE = 200
"""Hosts of which the peer is asked; it takes as long for each."""

_PARTS = ("inventories", "usages", "traits", "aggregates")
_EXTENDED = {
    "X-Auth-Token": "admin",
    "OpenStack-API-Version": EXTENDED,
    "Accept": "application/json",
}
_TIMEOUT = 600.0
_READINGS = 9

_WATCHERS = 1_000
_BESIDE = f"flat 1000, limit=10, beside {_WATCHERS} watchers"

CASES = (_EVERYTHING, _BESIDE)
"""The rows of a run."""

_ROUNDS = 3
_SEARCHES = 60
"""Searches of each round, with watchers and without."""

_WRITES_A_SECOND = 4


def bulk(*, peer: bool) -> Iterator[Row]:
    """Read 10,000 hosts with everything: in one answer, and by four calls each."""
    world = flat(_HOSTS)
    path = f"/treeclaim/providers?include={','.join(_PARTS)}&limit={_HOSTS}"
    with serving(OURS, world) as (endpoint, _):
        extension = Endpoint(OURS, endpoint.url, EXTENDED)
        answers = [extension.get(path) for _ in range(_READINGS)]
    seconds, body = [answer.seconds for answer in answers], answers[-1].body
    document = orjson.loads(body)
    if len(document["providers"]) != _HOSTS:
        raise SystemExit(f"{len(document['providers'])} providers in the answer")
    yield Row(
        _EVERYTHING,
        OURS,
        median_ms=1000 * median(seconds),
        p95_ms=1000 * percentile(seconds, 0.95),
        body_bytes=len(body),
        orjson_ms=orjson_ms(document),
    )
    if peer:
        with serving(PEER, world) as (endpoint, _):
            yield Row(_EVERYTHING, PEER, median_ms=1000 * _by_four_calls(world, endpoint))


def _by_four_calls(world: World, endpoint: Endpoint) -> float:
    """Return the seconds for the list, and four calls for each host, as far as a sample tells."""
    listed = endpoint.get("/resource_providers").seconds
    sample = world.providers[:: len(world.providers) // _SAMPLE]
    for part in _PARTS:
        endpoint.get(f"/resource_providers/{sample[0].uuid}/{part}")
    taken = sum(
        endpoint.get(f"/resource_providers/{host.uuid}/{part}").seconds
        for host in sample
        for part in _PARTS
    )
    return listed + taken * len(world.providers) / len(sample)


def watchers() -> Iterator[Row]:
    """Search with and without watchers in turn, while somebody writes all the time."""
    world = flat(1_000)
    with ExitStack() as stack:
        endpoint, _ = stack.enter_context(serving(OURS, world))
        _in_background(stack, _write, endpoint.url, world.providers[0].uuid)
        alone: list[float] = []
        beside: list[float] = []
        questions = iter(range(1, 1_000_000))
        for _ in range(_ROUNDS):
            alone += _searches(endpoint, world, questions)
            with ExitStack() as inner:
                _watching(inner, endpoint.url, _WATCHERS)
                beside += _searches(endpoint, world, questions)
    yield replace(
        Row(_BESIDE, OURS),
        median_ms=1000 * median(beside),
        p95_ms=1000 * percentile(beside, 0.95),
        alone_ms=1000 * median(alone),
    )


def _searches(endpoint: Endpoint, world: World, questions: Iterator[int]) -> list[float]:
    return [endpoint.ask(world.question(next(questions)), 10).seconds for _ in range(_SEARCHES)]


def _watching(stack: ExitStack, url: str, count: int) -> None:
    """Let a process of its own watch; return when all of its streams have begun."""
    ready = multiprocessing.Event()
    _in_background(stack, _watch, url, count, ready)
    if not ready.wait(_TIMEOUT):
        raise SystemExit("not all watchers are heard")


def _in_background(stack: ExitStack, work: object, *arguments: object) -> None:
    process = multiprocessing.Process(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
    process.start()
    stack.callback(process.join)
    stack.callback(process.terminate)


def _watch(url: str, count: int, ready: Event) -> None:
    parts = urlsplit(url)
    headers = _EXTENDED | {"Host": parts.netloc, "Accept": "text/event-stream"}
    lines = [f"{name}: {value}" for name, value in headers.items()]
    request = "\r\n".join(["GET /treeclaim/changes HTTP/1.1", *lines, "", ""]).encode()
    silent = set()
    with selectors.DefaultSelector() as selector:
        for _ in range(count):
            stream = socket.create_connection((parts.hostname, parts.port), _TIMEOUT)
            stream.sendall(request)
            selector.register(stream, selectors.EVENT_READ)
            silent.add(stream)
        while True:
            for key, _ in selector.select():
                stream = key.fileobj  # type: ignore[assignment]
                if not stream.recv(1 << 16):
                    raise SystemExit("a stream has ended")
                silent.discard(stream)
            if not silent:
                ready.set()


def _write(url: str, provider: str) -> None:
    """Change a provider again and again, so that there is something to tell."""
    path = f"/resource_providers/{provider}/traits"
    with httpx.Client(base_url=url, headers=_EXTENDED, timeout=_TIMEOUT) as client:
        while True:
            shown = client.get(path).json()
            traits = [] if shown["traits"] else ["HW_CPU_X86_AVX2"]
            client.put(path, json=shown | {"traits": traits}).raise_for_status()
            time.sleep(1 / _WRITES_A_SECOND)
