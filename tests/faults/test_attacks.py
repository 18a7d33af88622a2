# SPDX-License-Identifier: Apache-2.0
"""A client and a probe are answered while others attack a worker of four threads.

Each attack is a load that goes on until the others have been answered often enough; then it is looked
at what the attackers got. How long anything takes is not judged.
"""

import socket
import sqlite3
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field

import httpx
import psutil
import pytest

from tests.clouds.bulk import write_world
from tests.faults.harness.memory import Memory, endless, world
from tests.peer import memory_of
from tests.ports import free_port
from tests.servers import eventually, service_environment, serving
from treeclaim.server.processes.listening import allow_most_files

pytestmark = pytest.mark.slow

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39, treeclaim 1.0"}
CLIENT_SECONDS = 120
"""Longer than the service lets anybody wait."""

ATTACKERS = 8
ESTABLISHED = psutil.CONN_ESTABLISHED
DEAF = 4
"""As many as there are threads. Each has a child until it is given up, and few have one at a time."""

ROUNDS = 10
MEGABYTE = 1_000_000
HOST = "10000000-0000-4000-8000-000000000001"
HEADER_SECONDS = 5
REFUSED, LONG_PROJECT = 2_000, 60_000
"""Refused questions, and the characters of each: 120 MB, if a worker kept them."""
MOST_READ = 64 * MEGABYTE
"""Bytes of a streamed answer without a reader; both kernels buffered fewer."""


@dataclass
class Place:
    """A service, and what it listens on."""

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

    def client(self, **headers):
        """A client with full rights, unless headers say otherwise."""
        return httpx.Client(base_url=self.url, headers=HEADERS | headers, timeout=CLIENT_SECONDS)


@dataclass
class Outcome:
    """The statuses that attackers got, or the ends of their connections, with their numbers."""

    seen: Counter = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what):
        """Add an outcome."""
        with self.lock:
            self.seen[what] += 1


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
        with place.client() as client:
            made = client.post("/resource_providers", json={"name": "host", "uuid": HOST})
            assert made.status_code == 200
        others_are_answered(place)
        yield place


def others_are_answered(place, rounds=ROUNDS):
    """Somebody else asks and searches, always something new, and a probe looks."""
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
def repeated(place, ask):
    """Let clients ask again and again until the end of the block."""
    outcome, ended, begun = Outcome(), threading.Event(), threading.Semaphore(0)

    def work():
        with place.client() as client:
            while not ended.is_set():
                begun.release()
                outcome.note(ask(client))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(ATTACKERS)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=CLIENT_SECONDS)
    try:
        yield outcome
    finally:
        ended.set()
    for thread in threads:
        thread.join(2 * CLIENT_SECONDS)
        assert not thread.is_alive(), "an attacker never got an answer"


@contextmanager
def connections(place, number, data, address=None, received=None):
    """Open connections that send some bytes and then nothing; yield them."""
    allow_most_files()
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            client = stack.enter_context(socket.socket())
            if received is not None:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
            client.settimeout(CLIENT_SECONDS)
            client.connect(address or place.address)
            client.sendall(data)
            opened.append(client)
        yield opened


def end_of(client, most):
    """The first bytes of what a connection still gives until it is closed."""
    beginning, size = b"", 0
    with suppress(ConnectionResetError):
        while data := client.recv(1 << 16):
            beginning, size = beginning or data[:64], size + len(data)
            assert size < most, "it goes on and on"
    return beginning


@contextmanager
def ended_by_the_service(place, number, data, **how):
    """Connections of which all are closed by the service in the end; yields how."""
    outcome = Outcome()
    with connections(place, number, data, **how) as opened:
        yield outcome
        for client in opened:
            end = end_of(client, MEGABYTE)
            outcome.note(int(end.split()[1]) if end else "closed")


@contextmanager
def deaf(place):
    """Streamed answers without an end, of which nobody reads a byte."""
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    request = f"GET {endless(1)} HTTP/1.1\r\nHost: a\r\n{head}\r\n".encode()
    outcome = Outcome()
    with connections(place, DEAF, request, received=4096) as opened:
        yield outcome
        ports = {client.getsockname()[1] for client in opened}
        # A client that reads again before that is no attacker.
        # To look through all connections of a process takes as long as the pause.
        eventually(lambda: not ports & place.ports_of_clients(), "they are given up", 300, 0.5)
        for client in opened:
            end = end_of(client, MOST_READ)
            outcome.note(int(end.split()[1]) if end else "closed")


def silent_at_the_probes(place):
    """Connections to the listener of probes, without a byte."""
    url = httpx.URL(place.admin)
    return ended_by_the_service(place, 300, b"", address=(url.host, url.port))


@contextmanager
def watchers_of_many_trees(place):
    """As many watchers as there may be, each of as many trees as a URL names."""
    with closing(sqlite3.connect(place.database)) as database:
        result = database.execute("SELECT uuid FROM resource_providers LIMIT 1700").fetchall()
    trees = ",".join(row[0] for row in result)
    headers = HEADERS | {"openstack-api-version": "placement 1.39, treeclaim latest"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request = f"GET /treeclaim/changes?in_tree=in:{trees} HTTP/1.1\r\nHost: a\r\n{head}"
    data, outcome = f"{request}Accept: text/event-stream\r\n\r\n".encode(), Outcome()
    with connections(place, 990, data) as opened:
        for client in opened:
            result = client.recv(64)
            outcome.note(int(result.split()[1]) if result else "closed")
        yield outcome


@contextmanager
def locked(place):
    """Somebody outside holds the database's lock while more clients write than there are threads."""
    with closing(sqlite3.connect(place.database, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with repeated(place, write) as outcome:
            eventually(lambda: outcome.seen[503] >= ATTACKERS, "writes are refused")
            yield outcome
            holder.rollback()


def write(client):
    """Make a provider; who is told to come again is told when."""
    made = client.post("/resource_providers", json={"name": str(uuid.uuid4())})
    assert made.status_code != 503 or int(made.headers["retry-after"]) > 0
    return made.status_code


@contextmanager
def refused_callers(place):
    """Callers without a right, each with another project of the greatest length."""
    headers = {"x-auth-token": "nobody"}
    with repeated(place, lambda client: ask_for_long_project(client, headers)) as outcome:
        eventually(lambda: outcome.seen[403] >= REFUSED, "questions are refused")
        yield outcome


def ask_for_long_project(client, headers):
    project = uuid.uuid4().hex.ljust(LONG_PROJECT, "x")
    return client.get(f"/usages?project_id={project}", headers=headers).status_code


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        begin: Returns its context.
        outcomes: Responses to attackers: clear refusals.
        megabytes: How much larger the service may be meanwhile; children have a budget of their own.
    """

    begin: Callable
    outcomes: frozenset
    megabytes: int = 300


ATTACKS = {
    "answers that nobody reads": Attack(deaf, frozenset({200, 503, "closed"}), 900),
    "silent connections of probes": Attack(silent_at_the_probes, frozenset({"closed"})),
    "refused callers of long projects": Attack(refused_callers, frozenset({403}), 60),
    "watchers of many trees": Attack(watchers_of_many_trees, frozenset({200, 503}), 200),
    "a lock that is held outside": Attack(locked, frozenset({503, 200})),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_attack_is_refused_within_memory_while_others_are_answered(place, attack):
    before = memory_of(place.process)
    with Memory(place.process) as memory:
        with attack.begin(place) as outcome:
            others_are_answered(place)
        # On a slow machine some are told to come again later, but never all.
        assert set(outcome.seen) & attack.outcomes, outcome.seen
        assert set(outcome.seen) <= attack.outcomes | {503}, outcome.seen
    assert memory.most - before < attack.megabytes * MEGABYTE
    others_are_answered(place, rounds=1)
