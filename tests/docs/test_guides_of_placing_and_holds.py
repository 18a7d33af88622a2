# SPDX-License-Identifier: Apache-2.0
"""The examples and commands of the guides of placing and holds run in their order."""

import json
import re
import shlex
import uuid
from typing import Any

import pytest

from tests.cli.services import client_in, served, succeed
from tests.paths import ROOT
from treeclaim.client import ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology import read_topology

_BLOCK = re.compile(r"```(yaml|python|sh)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["placing.md", "holds.md"])
def test_examples_of_a_guide_work(tmp_path, monkeypatch, name):
    page = f"docs/guide/{name}"
    blocks = _BLOCK.findall((ROOT / page).read_text())
    monkeypatch.chdir(tmp_path)
    with served(tmp_path) as environment, client_in(environment) as client:
        known: dict[str, Any] = {
            "client": client,
            "consumers": lambda count: [str(uuid.uuid4()) for _ in range(count)],
            "hosts": lambda response: [
                known["names"][next(iter(row["allocations"]))]
                for row in response["allocation_requests"]
            ],
            "ClientError": ClientError,
        }
        assert {kind for kind, _ in blocks} >= {"yaml", "python"}
        for kind, text in blocks:
            if kind == "yaml":
                file = tmp_path / "topology.yaml"
                file.write_text(text)
                apply_topology(client, read_topology(file))
                known["names"] = {row["uuid"]: row["name"] for row in client.providers()}
                known["uuids"] = {name: uuid for uuid, name in known["names"].items()}
                line = {"consumer": str(uuid.uuid4()), "request": ["resources=VCPU:4"]}
                (tmp_path / "requests.jsonl").write_text(json.dumps(line))
            elif kind == "python":
                exec(compile(text, page, "exec"), known)
            else:
                for command in text.splitlines():
                    name, *arguments = shlex.split(command)
                    assert name == "treeclaim"
                    succeed(environment, *arguments)
