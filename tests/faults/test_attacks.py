# SPDX-License-Identifier: Apache-2.0
"""A client and a probe are answered while attackers load a worker of four threads.

Each attack runs until the client and the probe have enough answers. Then the test checks the attackers' answers. No
duration is judged.
"""

import sqlite3
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass

import httpx
import psutil
import pytest

from tests.clouds import World, WorldMaker
from tests.clouds.bulk import write_world
from tests.peer import memory_of
from tests.ports import free_port
from tests.server.fronts import connect, request_of
from tests.servers import eventually, service_environment, serving
from treeclaim.server.processes.listening import allow_most_files

pytestmark = pytest.mark.slow

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39, treeclaim 1.0"}
CLIENT_SECONDS = 120
"""Longer than any wait of the service."""

ATTACKERS = 8
ESTABLISHED = psutil.CONN_ESTABLISHED
DEAF = 4
"""As many as there are threads. Each has a child until it is given up, and few have one at a time."""

ROUNDS = 10
MEGABYTE = 1_000_000
HEADER_SECONDS = 5
REFUSED, LONG_PROJECT = 2_000, 60_000
"""Refused questions, and the characters of each: 120 MB, if a worker kept them."""
LOOK_SECONDS = 0.1
MOST_READ = 64 * MEGABYTE
"""Bytes of a streamed answer without a reader; both kernels buffered fewer."""


@dataclass
class Place:
    """A service with its addresses."""

    url: str
    admin: str
    database: str
    process: psutil.Process

    @property
    def address(self):
        """Return host and port of the API."""
        return (httpx.URL(self.url).host, httpx.URL(self.url).port)

    def ports_of_clients(self):
        ports = set()
        for process in (self.process, *self.process.children(recursive=True)):
            # Children end with their questions.
            with suppress(psutil.NoSuchProcess):
                connected = process.net_connections("tcp")
                ports |= {
                    connection.raddr.port
                    for connection in connected
                    if connection.status == ESTABLISHED
                }
        return ports

    def client(self):
        """A client with full rights."""
        return httpx.Client(base_url=self.url, headers=HEADERS, timeout=CLIENT_SECONDS)


def world(hosts):
    """Ordinary hosts, and a tree for which a query never ends."""
    maker = WorldMaker(5)
    for number in range(hosts):
        maker.add(f"host-{number}", {"VCPU": 64, "MEMORY_MB": 262_144, "DISK_GB": 2_000})
    wide = maker.add("wide", {"PGPU": 8})
    for number in range(60):
        maker.add(f"wide-{number}", {"FPGA": 50 + number}, wide)
    return World(f"{hosts} hosts", maker.providers, "resources=VCPU:1,MEMORY_MB:512", (10,))


GROUPS = "&".join(f"resources{number}=FPGA:2" for number in range(6))
ENDLESS = f"/allocation_candidates?{GROUPS}&group_policy=none"
"""Sixty children for each of six groups."""


@contextmanager
def watched_memory(process):
    """Yield a list of the bytes of a server's processes, shared pages counted once, measured during a block."""
    sizes, ended = [memory_of(process)], threading.Event()

    def watch():
        while not ended.wait(LOOK_SECONDS):
            sizes.append(memory_of(process))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A worker of four threads with short timeouts for silent clients."""
    folder = tmp_path_factory.mktemp("attacked")
    hosts = world(200)
    file = folder / "placement.db"
    write_world(f"sqlite:///{file}", hosts)
    admin = f"127.0.0.1:{free_port()}"
    environment = service_environment(
        folder,
        OS_TREECLAIM__ADMIN_LISTEN=admin,
        OS_TREECLAIM__HEADER_SECONDS=str(HEADER_SECONDS),
        OS_TREECLAIM__BODY_SECONDS=str(HEADER_SECONDS),
        OS_TREECLAIM__ANSWER_SECONDS=str(HEADER_SECONDS),
    )
    with serving(environment, folder, "--workers=1", "--threads=4") as server:
        process = psutil.Process(server.process.pid)
        place = Place(server.url, f"http://{admin}", str(file), process)
        others_are_answered(place)
        yield place


def others_are_answered(place, rounds=ROUNDS):
    """Another client sends requests and searches, always new ones, and a probe runs."""
    with place.client() as client, httpx.Client(timeout=CLIENT_SECONDS) as probe:
        for _ in range(rounds):
            assert client.get("/").status_code == 200
            amount = 1 + uuid.uuid4().int % 60
            answer = client.get(f"/allocation_candidates?resources=VCPU:{amount}&limit=5")
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["allocation_requests"]) == 5
            alive = probe.get(f"{place.admin}/live")
            assert alive.status_code == 200, alive.text


@contextmanager
def connections(place, number, path, headers=HEADERS, received=None):
    """Open connections that send a request and then nothing; yield them."""
    allow_most_files()
    data = request_of("GET", path, headers)
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            client = stack.enter_context(connect(place.address, received, CLIENT_SECONDS))
            client.sendall(data)
            opened.append(client)
        yield opened


def end_of(client, most):
    """Return the first remaining bytes of a connection, read until it is closed."""
    beginning, size = b"", 0
    with suppress(ConnectionResetError):
        while data := client.recv(1 << 16):
            beginning, size = beginning or data[:64], size + len(data)
            assert size < most, "it goes on and on"
    return beginning


@contextmanager
def deaf(place):
    """Clients that request endless streamed answers and read nothing."""
    outcomes = []
    with connections(place, DEAF, ENDLESS, received=4096) as opened:
        yield outcomes
        ports = {client.getsockname()[1] for client in opened}
        # A client that reads again before that is no attacker.
        # To look through all connections of a process takes as long as the pause.
        eventually(lambda: not ports & place.ports_of_clients(), "they are given up", 300, 0.5)
        for client in opened:
            end = end_of(client, MOST_READ)
            outcomes.append(int(end.split()[1]) if end else "closed")


@contextmanager
def watchers_of_many_trees(place):
    """As many watchers as there may be, each of as many trees as a URL names."""
    with closing(sqlite3.connect(place.database)) as database:
        result = database.execute("SELECT uuid FROM resource_providers LIMIT 1700").fetchall()
    trees = ",".join(row[0] for row in result)
    path, outcomes = f"/treeclaim/changes?in_tree=in:{trees}", []
    with connections(place, 990, path, HEADERS | {"accept": "text/event-stream"}) as opened:
        for client in opened:
            result = client.recv(64)
            outcomes.append(int(result.split()[1]) if result else "closed")
        yield outcomes


@contextmanager
def refused_callers(place):
    """Callers without a right, each with another project of the greatest length."""
    outcomes, ended = [], threading.Event()

    def work():
        with place.client() as client:
            client.headers["x-auth-token"] = "nobody"
            while not ended.is_set():
                project = uuid.uuid4().hex.ljust(LONG_PROJECT, "x")
                outcomes.append(client.get(f"/usages?project_id={project}").status_code)

    with ThreadPoolExecutor(ATTACKERS) as pool:
        attackers = [pool.submit(work) for _ in range(ATTACKERS)]
        try:
            eventually(lambda: outcomes.count(403) >= REFUSED, "questions are refused")
            yield outcomes
        finally:
            ended.set()
        for attacker in attackers:
            attacker.result(2 * CLIENT_SECONDS)


ATTACKS = {
    "answers that nobody reads": (deaf, {200, 503, "closed"}, 900),
    "refused callers of long projects": (refused_callers, {403}, 60),
    "watchers of many trees": (watchers_of_many_trees, {200, 503}, 200),
}
"""The context of an attack, the clear refusals that it may get, and by how many MB the service may grow meanwhile.
Children have a budget of their own."""


@pytest.mark.parametrize(("attack", "refusals", "megabytes"), ATTACKS.values(), ids=ATTACKS)
def test_attack_is_refused_within_memory_while_others_are_answered(
    place, attack, refusals, megabytes
):
    with watched_memory(place.process) as sizes:
        with attack(place) as outcomes:
            others_are_answered(place)
        # On a slow machine some requests get a 503, but never all.
        assert set(outcomes) & refusals, Counter(outcomes)
        assert set(outcomes) <= refusals | {503}, Counter(outcomes)
    assert max(sizes) - sizes[0] < megabytes * MEGABYTE
    others_are_answered(place, rounds=1)
