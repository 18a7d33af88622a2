# SPDX-License-Identifier: Apache-2.0
"""Bulk reads of a whole cloud, and searches beside a thousand streams that watch it."""

import asyncio
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from urllib.parse import urlsplit

import orjson

from bench.clients.endpoint import Endpoint, median, median_ms
from bench.measures.quiet import orjson_ms
from bench.rows import Row
from bench.services import Extent
from tests.clouds import World

_SAMPLE = 200
"""Hosts that are read from the peer; the time is extrapolated to all hosts."""

_PARTS = ("inventories", "usages", "traits", "aggregates")
_TIMEOUT = 600.0
_READINGS = 9
_WATCHERS = 1_000
_ROUNDS = 3
_SEARCHES = 60
"""Searches of each round, with watchers and without."""

_WRITES_A_SECOND = 4


def bulk(world: World, endpoints: Sequence[Endpoint], _: Extent) -> Iterator[Row]:
    """Read all hosts with all parts: in one answer, or by a list and four calls for each host."""
    hosts = world.providers
    case = f"{world.name}: everything"
    for endpoint in endpoints:
        if endpoint.has_extension:
            extended_endpoint = endpoint.extended()
            path = f"/treeclaim/providers?include={','.join(_PARTS)}&limit={len(hosts)}"
            answers = [extended_endpoint.get(path) for _ in range(_READINGS)]
            document = orjson.loads(answers[0].body)
            if len(document["providers"]) != len(hosts):
                raise SystemExit(f"{len(document['providers'])} providers in the answer")
            milliseconds = 1000 * median([answer.seconds for answer in answers])
            yield Row(case, endpoint.name, milliseconds, base=orjson_ms(document))
            continue
        list_seconds = endpoint.get("/resource_providers").seconds
        sample = hosts[:: len(hosts) // _SAMPLE]
        paths = [
            f"/resource_providers/{provider.uuid}/{part}" for provider in sample for part in _PARTS
        ]
        for path in paths[: len(_PARTS)]:
            endpoint.get(path)
        seconds = sum(endpoint.get(path).seconds for path in paths)
        yield Row(case, endpoint.name, 1000 * (list_seconds + seconds * len(hosts) / len(sample)))


def watchers(world: World, endpoints: Sequence[Endpoint], _: Extent) -> Iterator[Row]:
    """Search with and without watchers in turn, while another client writes."""
    for endpoint in endpoints:
        numbers = itertools.count(1)

        def search(endpoint: Endpoint = endpoint, numbers: Iterator[int] = numbers) -> None:
            endpoint.ask(world.question(next(numbers)), 10)

        alone_ms, beside_ms = [], []
        with _in_background(_write, endpoint.extended(), world.providers[0].uuid):
            for _round in range(_ROUNDS):
                alone_ms.append(median_ms(search, _SEARCHES))
                ready_event = multiprocessing.Event()
                with _in_background(_watch, endpoint.extended(), ready_event):
                    if not ready_event.wait(_TIMEOUT):
                        raise SystemExit("not all watchers received an event")
                    beside_ms.append(median_ms(search, _SEARCHES))
        case = f"{world.name}, limit=10, beside {_WATCHERS} watchers"
        yield Row(case, endpoint.name, median(beside_ms), base=median(alone_ms))


@contextmanager
def _in_background(
    work: Callable[..., None], endpoint: Endpoint, *arguments: object
) -> Iterator[None]:
    """Run a function in a child process while the block runs."""
    arguments = (endpoint.url, endpoint.headers, *arguments)
    process = multiprocessing.Process(target=work, args=arguments, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _watch(url: str, headers: dict[str, str], ready_event: Event) -> None:
    parts = urlsplit(url)
    lines = [f"{name}: {value}" for name, value in headers.items() if name != "Accept"]
    head = [
        "GET /treeclaim/changes HTTP/1.1",
        f"Host: {parts.netloc}",
        "Accept: text/event-stream",
    ]
    request = "\r\n".join([*head, *lines, "", ""]).encode()

    async def watch(barrier: asyncio.Barrier) -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(request)
        await reader.readexactly(1)
        await barrier.wait()
        ready_event.set()
        while await reader.read(1 << 16):
            pass
        raise SystemExit("a stream has ended")

    async def watch_all() -> None:
        barrier = asyncio.Barrier(_WATCHERS)
        await asyncio.gather(*(watch(barrier) for _ in range(_WATCHERS)))

    asyncio.run(watch_all())


def _write(url: str, _: dict[str, str], provider: str) -> None:
    """Change a provider again and again, so that watchers receive events."""
    path = f"/resource_providers/{provider}/traits"
    endpoint = Endpoint("the writer", url)
    while True:
        document = orjson.loads(endpoint.get(path).body)
        traits = [] if document["traits"] else ["HW_CPU_X86_AVX2"]
        endpoint.send("PUT", path, document | {"traits": traits})
        time.sleep(1 / _WRITES_A_SECOND)
