# SPDX-License-Identifier: Apache-2.0
"""Clients generated from the API description run the steps of the guide: place, watch and page."""

import json
import os
import subprocess

import pytest

from tests.cli.services import run_service, run_successful_command
from tests.environments import environment_of, node_packages
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

TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./api";

const version = "placement 1.39, treeclaim 1.0";
const header = { "OpenStack-API-Version": version };
const client = createClient<paths>({ baseUrl: process.argv[2], headers: { "X-Auth-Token": "admin" } });

function known<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const names: string[] = [];
let cursor: string | undefined;
let marker: string | undefined;
do {
  const page = known(await client.GET("/treeclaim/providers", { params: { header, query: { limit: 2, marker } } }));
  cursor ??= page.cursor;
  names.push(...page.providers.map(({ name }) => name));
  marker = page.links[0] && decodeURIComponent(page.links[0].href.split("marker=")[1]);
} while (marker);
if (names.sort().join() !== "host-1,host-2,host-3") throw new Error(names.join());

const query = { resources: "VCPU:2", required: ["CUSTOM_GOLD", "in:CUSTOM_RED,HW_CPU_X86_AVX"], order_by: "pack", limit: 1 };
const found = known(await client.GET("/allocation_candidates", { params: { header, query } }));
const { allocations } = found.allocation_requests[0];
const [provider] = Object.keys(allocations);
const amount: number = allocations[provider].resources["VCPU"];
if (amount !== 2 || found.scores?.length !== 1) throw new Error(JSON.stringify(found));
const claimed = await client.PUT("/allocations/{consumer_uuid}", {
  params: { header: { "OpenStack-API-Version": "placement 1.39" }, path: { consumer_uuid: crypto.randomUUID() } },
  body: { allocations, project_id: "p", user_id: "u", consumer_generation: null, consumer_type: "INSTANCE" },
});
if (claimed.response.status !== 204) throw new Error(JSON.stringify(claimed.error));

const consumers = [crypto.randomUUID(), crypto.randomUUID()];
const requests = [{ alternatives: ["resources1=VCPU:1"], consumers, project_id: "p", user_id: "u", consumer_type: "INSTANCE" }];
const placed = known(await client.POST("/treeclaim/placements", { params: { header }, body: { requests } }));
if (placed.placements.length !== 2) throw new Error(JSON.stringify(placed));

const news = await client.GET("/treeclaim/changes", { params: { header, query: { since: cursor, wait: 1 } } });
if (news.response.status === 410) throw new Error("the cursor is too old");
const changes = known(news);
if (typeof changes === "string" || !changes.changes.some(({ uuid }) => uuid === provider)) throw new Error(JSON.stringify(changes));
console.log("done");
"""

COMPILER = {
    "compilerOptions": {
        "strict": True,
        "module": "esnext",
        "target": "esnext",
        "moduleResolution": "bundler",
        "skipLibCheck": True,
        "types": ["node"],
    },
    "files": ["loop.ts"],
}


@pytest.fixture
def service(tmp_path):
    """The address of a service with three hosts."""
    folder = tmp_path / "service"
    folder.mkdir()
    topology = folder / "topology.yaml"
    topology.write_text(TOPOLOGY)
    with run_service(folder) as environment:
        run_successful_command(environment, "load", str(topology))
        yield environment["TREECLAIM_ENDPOINT"]


def _read_output(*command, folder):
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
    result = _read_output(
        programs / "openapi-python-client", "generate", *options, folder=tmp_path
    )
    # The generator leaves out parts that it cannot read.
    assert "WARNING" not in result, result
    (tmp_path / "loop.py").write_text(PYTHON)
    assert "done" in _read_output(programs / "python", "loop.py", service, folder=tmp_path)


def test_a_client_of_openapi_typescript_places_watches_and_pages(node, service, tmp_path):
    packages = node_packages(
        "openapi-typescript",
        "openapi-typescript@7",
        "typescript@5",
        "openapi-fetch",
        "@types/node@20",
    )
    (tmp_path / "node_modules").symlink_to(packages)
    programs = packages / ".bin"
    _read_output(
        programs / "openapi-typescript", str(DESCRIPTION), "-o", "api.d.ts", folder=tmp_path
    )
    (tmp_path / "loop.ts").write_text(TYPESCRIPT)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(COMPILER))
    _read_output(programs / "tsc", "--project", "tsconfig.json", folder=tmp_path)
    assert "done" in _read_output("node", "loop.js", service, folder=tmp_path)
