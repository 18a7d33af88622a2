# SPDX-License-Identifier: Apache-2.0
"""Clients that others make of the API description do what the guide does: place, watch and page."""

import os
import subprocess

import pytest

from tests.cli.services import served, succeed
from tests.environments import environment_of
from tests.paths import ROOT

pytestmark = pytest.mark.long

DESCRIPTION = ROOT / "docs" / "openapi.json"

TOPOLOGY = """
providers:
- {name: "host-{n}", count: 3, traits: [CUSTOM_GOLD, CUSTOM_RED], inventories: {VCPU: 4}}
"""

PYTHON = """
import sys, uuid
from client import AuthenticatedClient
from client.api.default import (
    list_candidates, list_changes, list_providers_in_bulk, place_consumers, replace_allocations,
)
from client.models import Claim, PlaceConsumersBody, PlaceConsumersBodyRequestsItem

VERSION = "placement 1.39, treeclaim 1.0"
client = AuthenticatedClient(
    base_url=sys.argv[1], token="admin", prefix="", auth_header_name="X-Auth-Token",
    raise_on_unexpected_status=True,
)
with client:
    def ask(operation, **arguments):
        return operation.sync(client=client, open_stack_api_version=VERSION, **arguments)

    names, marker, cursor = [], {}, None
    while True:
        page = ask(list_providers_in_bulk, limit=2, **marker)
        cursor = cursor or page.cursor
        names += [provider.name for provider in page.providers]
        if not page.links:
            break
        marker = {"marker": page.links[0].href.split("marker=")[1].split("&")[0]}
    assert sorted(names) == ["host-1", "host-2", "host-3"], names

    found = ask(
        list_candidates, resources="VCPU:2", required=["CUSTOM_GOLD", "in:CUSTOM_RED,HW_CPU_X86_AVX"],
        order_by="pack", limit=1,
    )
    [request] = found.allocation_requests
    [provider] = request.allocations.additional_keys
    assert request.allocations[provider].resources["VCPU"] == 2
    assert len(found.scores) == 1
    body = Claim.from_dict({
        "allocations": request.allocations.to_dict(), "project_id": "p", "user_id": "u",
        "consumer_generation": None, "consumer_type": "INSTANCE",
    })
    done = replace_allocations.sync_detailed(
        str(uuid.uuid4()), client=client, open_stack_api_version="placement 1.39", body=body
    )
    assert done.status_code == 204, done

    many = PlaceConsumersBodyRequestsItem(
        alternatives=["resources1=VCPU:1"], consumers=[str(uuid.uuid4()), str(uuid.uuid4())],
        project_id="p", user_id="u", consumer_type="INSTANCE",
    )
    placed = ask(place_consumers, body=PlaceConsumersBody(requests=[many]))
    assert len(placed.placements) == 2, placed

    changes = ask(list_changes, since=cursor, wait=1)
    assert provider in [change.uuid for change in changes.changes], changes
print("done")
"""


@pytest.fixture
def service(tmp_path):
    """The address of a service with three hosts."""
    folder = tmp_path / "service"
    folder.mkdir()
    topology = folder / "topology.yaml"
    topology.write_text(TOPOLOGY)
    with served(folder) as environment:
        succeed(environment, "load", str(topology))
        yield environment["TREECLAIM_ENDPOINT"]


def _said(*command, folder):
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=180,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:]
    return result.stdout


def test_a_client_of_openapi_python_client_places_watches_and_pages(service, tmp_path):
    programs = environment_of("openapi-python-client", "openapi-python-client", "httpx") / "bin"
    options = ("--path", str(DESCRIPTION), "--meta", "none", "--output-path", "client")
    result = _said(programs / "openapi-python-client", "generate", *options, folder=tmp_path)
    # What it cannot read, it leaves out.
    assert "WARNING" not in result, result
    (tmp_path / "loop.py").write_text(PYTHON)
    assert "done" in _said(programs / "python", "loop.py", service, folder=tmp_path)
