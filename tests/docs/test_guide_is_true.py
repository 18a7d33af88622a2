# SPDX-License-Identifier: Apache-2.0
"""Every topology of the guides of modelling and devices loads, and every request has the answer shown."""

import re

import pytest

from tests.paths import ROOT
from tests.service import InProcess, client_of, make_application
from treeclaim.client import Client
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
