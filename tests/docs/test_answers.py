# SPDX-License-Identifier: Apache-2.0
"""The examples of the guides on modelling and devices, and of the page on lists and audits: every topology loads, and every
request has the shown answer, which is a list of candidates or a JSON document with ellipses for variable parts."""

import json
import re

import pytest

from tests.paths import ROOT
from tests.service import InProcess
from treeclaim.client import Client
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology

SEEING = ROOT / "docs" / "seeing.md"
GUIDES = [ROOT / "docs" / "guide" / name for name in ("modelling.md", "devices.md")]
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"```(yaml|request|json)\n(.*?)```", re.DOTALL)
_ANYTHING = "…"
_HOST = "7c6c3ea5-5c31-4b3a-9d9c-0d8f6c1f1001"
_SERVER = "7c6c3ea5-5c31-4b3a-9d9c-0d8f6c1f2001"


def sections():
    """The title of each section of the guides, and kind and text of its blocks."""
    parts = [part for guide in GUIDES for part in _SECTION.split(guide.read_text())[1:]]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        if blocks := _BLOCK.findall(text):
            yield title, blocks


@pytest.fixture
def client(fresh_service):
    return Client(adapter=InProcess(fresh_service()))


@pytest.mark.parametrize(
    "blocks", [pytest.param(blocks, id=title) for title, blocks in sections()]
)
def test_guide_requests_return_the_documented_candidates(client, blocks):
    (topology,) = [text for kind, text in blocks if kind == "yaml"]
    requests = [text for kind, text in blocks if kind == "request"]
    apply_topology(client, parse_topology(topology, "guide"))
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


@pytest.mark.slow
def test_documented_requests_return_the_shown_responses(client):
    (_, topology), *blocks = _BLOCK.findall(SEEING.read_text())
    apply_topology(client, parse_topology(topology, "page"))
    held = {"allocations": {_HOST: {"resources": {"VCPU": 4}}}}
    client.claim(_SERVER, held, project_id="mine", user_id="me")
    requests = [text for kind, text in blocks if kind == "request"]
    answers = [text for kind, text in blocks if kind == "json"]
    assert len(requests) > 3
    for request, answer in zip(requests, answers, strict=True):
        line, _, body = request.partition("\n")
        method, path = line.split()
        sent = json.loads(body) if body else None
        document = client.call(method, path, json=sent, extended=True)
        shown = json.loads(answer)
        assert without_shown_ellipses(document, shown) == shown, path


def without_shown_ellipses(document, shown):
    """Return a document with an ellipsis wherever the page shows one."""
    if shown == _ANYTHING:
        return shown
    if isinstance(shown, dict) and isinstance(document, dict):
        assert list(shown) == list(document)
        return {name: without_shown_ellipses(document[name], shown[name]) for name in shown}
    if isinstance(shown, list) and isinstance(document, list):
        pairs = zip(document, shown, strict=True)
        return [without_shown_ellipses(entry, shown_entry) for entry, shown_entry in pairs]
    return document
