# SPDX-License-Identifier: Apache-2.0
"""The loop of docs/guide/asking.md takes the next candidate on a conflict, and claims once whenever its service is killed."""

import re
import signal
import sys
import threading
import uuid
from functools import partial

import pytest

from tests.paths import ROOT
from tests.servers import START_SECONDS, service_environment, serving
from tests.service import FakeAdapter, InProcess, client_of, make_application
from treeclaim.client import Client, ClientError, LostConnectionError, Patience
from treeclaim.client.loading import apply_topology
from treeclaim.client.session import make_adapter, make_session, send
from treeclaim.client.topology import parse_topology

QUERY = "resources=VCPU:1"
PATIENCE = Patience(START_SECONDS)
TOPOLOGY = "providers:\n- {name: 'host-{n}', count: 40, inventories: {VCPU: 1}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """`treeclaim serve` with forty hosts of one processor each."""
    folder = tmp_path_factory.mktemp("service")
    with serving(service_environment(folder), folder, "--workers=1") as started:
        with Client(started.url, "admin") as client:
            apply_topology(client, parse_topology(TOPOLOGY, "text"))
        yield started


class RestartingServer:
    """Kills a server once, and starts it again while its client waits."""

    def __init__(self, server):
        self._server = server
        self._thread = None

    def kill(self):
        """Kill the server with SIGKILL; start it in a thread."""
        self._server.stop(signal.SIGKILL)
        self._thread = threading.Thread(target=self._server.start)
        self._thread.start()

    @property
    def was_killed(self):
        """Return whether `kill` was called."""
        return self._thread is not None

    def wait(self):
        """Wait until the server is up again."""
        if self._thread is not None:
            self._thread.join()


class KilledAtClaim(FakeAdapter):
    """An adapter whose server is killed at the first claim, before or after it is committed."""

    def __init__(self, server, restarting, *, is_committed):
        self._inner = make_adapter(make_session(server.url, "admin"))
        self._restarting = restarting
        self._is_committed = is_committed

    def send(self, method, path, headers, json):
        forward = partial(send, self._inner, method, path, headers, json)
        if method != "PUT" or self._restarting.was_killed:
            return forward()
        if not self._is_committed:
            self._restarting.kill()
            return forward()
        assert forward().status_code == 204
        self._restarting.kill()
        raise LostConnectionError("the answer was lost")


def guide_loop():
    """Compile the loop that the guide shows; the names it uses are those that it imports."""
    text = (ROOT / "docs" / "guide" / "asking.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (loop,) = [block for block in blocks if "def scheduled" in block]
    names = {"ClientError": ClientError}
    exec(compile(loop, "asking.md", "exec"), names)
    return names["scheduled"]


def count_held(client, consumer):
    """Return how many processors a consumer holds."""
    allocations = client.get(f"/allocations/{consumer}")["allocations"]
    return sum(provider["resources"]["VCPU"] for provider in allocations.values())


def test_loop_takes_the_next_candidate_on_conflict(tmp_path):
    adapter = InProcess(client_of(make_application(tmp_path)))
    client = Client(adapter=adapter)
    text = "providers: [{name: a, inventories: {VCPU: 1}}, {name: b, inventories: {VCPU: 1}}]"
    apply_topology(client, parse_topology(text, "text"))

    def claim_first(method, path):
        if method == "PUT" and path.startswith("/allocations/"):
            adapter.before = lambda *_: None
            first = client.candidates(QUERY)["allocation_requests"][0]
            client.claim(str(uuid.uuid4()), first, project_id="p", user_id="u")

    adapter.before = claim_first
    scheduled, consumer = guide_loop(), str(uuid.uuid4())
    assert scheduled(client, consumer, QUERY) is not None
    assert count_held(client, consumer) == 1
    assert scheduled(client, str(uuid.uuid4()), QUERY) is None


@pytest.mark.slow
def test_loop_survives_a_kill_before_each_of_its_lines(server):
    scheduled = guide_loop()
    line = 0
    while True:
        restarting, lines = RestartingServer(server), []

        def kill_at_line(frame, event, _, restarting=restarting, lines=lines, line=line):
            if frame.f_code is not scheduled.__code__:
                return None
            if event == "line":
                lines.append(frame.f_lineno)
                if len(lines) == line + 1:
                    restarting.kill()
            return kill_at_line

        consumer = str(uuid.uuid4())
        with Client(server.url, "admin", patience=PATIENCE) as client:
            assert client.extension is not None
            sys.settrace(kill_at_line)
            try:
                assert scheduled(client, consumer, QUERY) is not None
            finally:
                sys.settrace(None)
                restarting.wait()
            assert count_held(client, consumer) == 1
        if not restarting.was_killed:
            break
        line += 1
    assert line >= 4


@pytest.mark.slow
@pytest.mark.parametrize("is_committed", [False, True])
def test_loop_survives_a_kill_during_the_claim(server, is_committed):
    restarting = RestartingServer(server)
    adapter = KilledAtClaim(server, restarting, is_committed=is_committed)
    consumer = str(uuid.uuid4())
    with Client(adapter=adapter, patience=PATIENCE) as client:
        used = count_used(client)
        try:
            assert guide_loop()(client, consumer, QUERY) is not None
        finally:
            restarting.wait()
        assert restarting.was_killed
        assert count_held(client, consumer) == 1
        assert count_used(client) == used + 1


def count_used(client):
    """Return how many processors the project of the loop uses."""
    usages = client.get("/usages", project_id="project")["usages"]
    return sum(of_type.get("VCPU", 0) for of_type in usages.values())
