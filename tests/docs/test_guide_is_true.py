# SPDX-License-Identifier: Apache-2.0
"""Every topology of the modelling guide loads, and every request in it has the answer shown."""

from tests.paths import ROOT
import re

import pytest

from tests.service import InProcess, client_of, make_application
from treeclaim.client import Client
from treeclaim.client.loading.apply import apply_topology
from treeclaim.client.topology import read_topology

GUIDE = ROOT / "docs" / "guide" / "modelling.md"
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"```(yaml|request)\n(.*?)```", re.DOTALL)


def sections():
    """The title, topology and requests of each section."""
    parts = _SECTION.split(GUIDE.read_text())[1:]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        blocks = _BLOCK.findall(text)
        (topology,) = [body for kind, body in blocks if kind == "yaml"]
        yield title, topology, [body for kind, body in blocks if kind == "request"]


SECTIONS = list(sections())


@pytest.mark.parametrize(
    ("topology", "requests"),
    [one[1:] for one in SECTIONS],
    ids=[title for title, _, _ in SECTIONS],
)
def test_each_request_has_the_candidates_shown(tmp_path, topology, requests):
    file = tmp_path / "topology.yaml"
    file.write_text(topology)
    application = make_application(tmp_path)
    with Client(transport=InProcess(client_of(application))) as client:
        client.ensure_names(["CUSTOM_GPU_B200"], [])
        apply_topology(client, read_topology(file))
        names = {one["uuid"]: one["name"] for one in client.providers()}
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
            for provider, given in one["allocations"].items()
            for resource_class, amount in given["resources"].items()
        )
        for one in client.candidates(query)["allocation_requests"]
    )


def test_the_guide_explains_what_it_says_is_explained(tmp_path):
    _, topology, requests = next(one for one in SECTIONS if one[0].startswith("SR-IOV"))
    file = tmp_path / "topology.yaml"
    file.write_text(topology)
    with Client(transport=InProcess(client_of(make_application(tmp_path)))) as client:
        apply_topology(client, read_topology(file))
        told = client.explain(requests[-1].strip())
    assert told["funnel"][-1]["reason"] == "same_subtree"
