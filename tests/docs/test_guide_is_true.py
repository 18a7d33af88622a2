# SPDX-License-Identifier: Apache-2.0
"""Every topology of the guides of modelling and devices loads, and every request has the answer shown."""

import re
import shlex
import uuid
from functools import partial
from typing import Any

import pytest

from tests.cli.processes import call
from tests.cli.services import served
from tests.paths import ROOT
from tests.service import FakeAdapter, InProcess, client_of, make_application
from treeclaim.client import Client, ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology import read_topology

GUIDES = [ROOT / "docs" / "guide" / name for name in ("modelling.md", "devices.md")]
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"```(yaml|request)\n(.*?)```", re.DOTALL)


def sections():
    """The title, topology and requests of each section."""
    parts = [part for guide in GUIDES for part in _SECTION.split(guide.read_text())[1:]]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        blocks = _BLOCK.findall(text)
        if not blocks:
            continue
        (topology,) = [body for kind, body in blocks if kind == "yaml"]
        yield title, topology, [body for kind, body in blocks if kind == "request"]


SECTIONS = list(sections())


@pytest.mark.parametrize(
    ("topology", "requests"),
    [section[1:] for section in SECTIONS],
    ids=[title for title, _, _ in SECTIONS],
)
def test_guide_requests_return_the_documented_candidates(tmp_path, topology, requests):
    file = tmp_path / "topology.yaml"
    file.write_text(topology)
    application = make_application(tmp_path)
    with Client(adapter=InProcess(client_of(application))) as client:
        apply_topology(client, read_topology(file))
        names = {row["uuid"]: row["name"] for row in client.providers()}
        assert requests
        for request in requests:
            query, *lines = request.strip().splitlines()
            assert candidates(client, query, names) == sorted(
                sorted(line.removeprefix("- ").split(", ")) for line in lines
            ), query


def candidates(client, query, names):
    """The candidates of a query as the guide writes them."""
    return sorted(
        sorted(
            f"{names[provider]} {resource_class} {amount}"
            for provider, resources in row["allocations"].items()
            for resource_class, amount in resources["resources"].items()
        )
        for row in client.candidates(query)["allocation_requests"]
    )


def test_guide_explanation_matches_the_response(tmp_path):
    _, topology, requests = next(
        section for section in SECTIONS if section[0].startswith("SR-IOV")
    )
    file = tmp_path / "topology.yaml"
    file.write_text(topology)
    with Client(adapter=InProcess(client_of(make_application(tmp_path)))) as client:
        apply_topology(client, read_topology(file))
        explanation = client.explain(requests[-1].strip())
    assert explanation["funnel"][-1]["reason"] == "same_subtree"


@pytest.mark.slow
def test_guide_commands_for_conditions_work(tmp_path):
    text = (ROOT / "docs" / "guide" / "devices.md").read_text()
    commands = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    _, topology, _ = next(section for section in SECTIONS if section[0].startswith("Numbers"))
    (tmp_path / "card.yaml").write_text(topology)
    outputs = {}
    with served(tmp_path) as environment:
        assert call(environment, "load", str(tmp_path / "card.yaml")).returncode == 0
        for command in commands.splitlines():
            _, *arguments = shlex.split(command)
            result = call(environment, *arguments)
            assert result.returncode == 0, (command, result)
            words = [word for word in arguments[:2] if word.isalpha()]
            outputs[" ".join(words)] = result.stdout
    assert "1 placed" in outputs["place"]
    assert "wiped between tenants" in outputs["condition list"]
    assert "uncorrectable ECC errors" in outputs["explain"]
    assert "gpu-2" in outputs["candidates"]
    assert "gpu-1" not in outputs["candidates"]
    assert (
        "1 move (at least 1 needed); the goal is reached; consumers left: 1 to 0"
        in outputs["plan drain"]
    )


class Meeting(FakeAdapter):
    """An adapter on which something happens at the first claim.

    Args:
        inner: The transport of calls.
        meets: Called with the first PUT of allocations, as a function without arguments; its answer
            is what the client gets.
    """

    def __init__(self, inner, meets):
        self.inner = inner
        self.meets = meets

    def send(self, method, path, headers, json):
        send = partial(self.inner.send, method, path, headers, json)
        if method != "PUT" or not path.startswith("/allocations/") or self.meets is None:
            return send()
        meets, self.meets = self.meets, None
        return meets(send)


@pytest.fixture
def two_hosts(tmp_path):
    """An adapter to a service with two hosts of one processor each."""
    file = tmp_path / "topology.yaml"
    file.write_text(
        "providers:\n- {name: a, inventories: {VCPU: 1}}\n- {name: b, inventories: {VCPU: 1}}"
    )
    adapter = InProcess(client_of(make_application(tmp_path)))
    apply_topology(Client(adapter=adapter), read_topology(file))
    return adapter


def scheduled(adapter, consumer):
    """Run the guide's loop."""
    text = (ROOT / "docs" / "guide" / "asking.md").read_text()
    (loop,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "def scheduled" in block
    ]
    names: dict[str, Any] = {"ClientError": ClientError}
    exec(loop, names)
    return names["scheduled"](Client(adapter=adapter), consumer, "resources=VCPU:1")


def test_scheduler_loop_takes_the_next_candidate_on_conflict(two_hosts):
    def rival(send):
        client = Client(adapter=two_hosts)
        first = client.candidates("resources=VCPU:1")["allocation_requests"][0]
        client.claim(str(uuid.uuid4()), first, project_id="p", user_id="u")
        return send()

    consumer = str(uuid.uuid4())
    assert scheduled(Meeting(two_hosts, rival), consumer) is not None
    assert Client(adapter=two_hosts).get(f"/allocations/{consumer}")["allocations"]
    assert scheduled(two_hosts, str(uuid.uuid4())) is None
