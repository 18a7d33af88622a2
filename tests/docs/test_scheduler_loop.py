# SPDX-License-Identifier: Apache-2.0
"""The loop of docs/guide/asking.md takes the next candidate on a conflict,
and claims once whenever its service is killed."""

import re
import signal
import sys
import threading
import uuid
from itertools import count

import pytest

from tests.paths import ROOT
from tests.servers import START_SECONDS, service_environment, serving
from tests.service import InProcess, client_of, make_application
from treeclaim.client import Client, ClientError, Patience
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology

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
    for number in count(1):
        lines, starts = [], []

        def kill_at_line(frame, event, _, number=number, lines=lines, starts=starts):
            if frame.f_code is not scheduled.__code__:
                return None
            if event == "line":
                lines.append(frame.f_lineno)
                if len(lines) == number:
                    server.stop(signal.SIGKILL)
                    starts.append(threading.Thread(target=server.start))
                    starts[0].start()
            return kill_at_line

        consumer = str(uuid.uuid4())
        with Client(server.url, "admin", patience=PATIENCE) as client:
            assert client.extension is not None
            sys.settrace(kill_at_line)
            try:
                assert scheduled(client, consumer, QUERY) is not None
            finally:
                sys.settrace(None)
                for thread in starts:
                    thread.join()
            assert count_held(client, consumer) == 1
        if not starts:
            break
    assert number > 4
