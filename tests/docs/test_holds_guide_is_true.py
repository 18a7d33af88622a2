# SPDX-License-Identifier: Apache-2.0
"""The examples and commands of the page about holds run, one after the other, as they stand there."""

import json
import re
import shlex
import uuid

import pytest

from tests.cli.services import client_in, served, succeed
from tests.paths import ROOT
from treeclaim.client import ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology import read_topology

PAGE = "docs/guide/holds.md"
_BLOCK = re.compile(r"```(yaml|python|sh)\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_holds_guide_examples_work(tmp_path, monkeypatch):
    blocks = _BLOCK.findall((ROOT / PAGE).read_text())
    monkeypatch.chdir(tmp_path)
    with served(tmp_path) as environment, client_in(environment) as client:
        known = {
            "client": client,
            "consumers": lambda count: [str(uuid.uuid4()) for _ in range(count)],
            "ClientError": ClientError,
        }
        assert {kind for kind, _ in blocks} == {"yaml", "python", "sh"}
        for kind, text in blocks:
            if kind == "yaml":
                file = tmp_path / "topology.yaml"
                file.write_text(text)
                apply_topology(client, read_topology(file))
                known["uuids"] = {row["name"]: row["uuid"] for row in client.providers()}
                line = {"consumer": str(uuid.uuid4()), "request": ["resources=VCPU:4"]}
                (tmp_path / "requests.jsonl").write_text(json.dumps(line))
            elif kind == "python":
                exec(compile(text, PAGE, "exec"), known)
            else:
                for command in text.splitlines():
                    name, *arguments = shlex.split(command)
                    assert name == "treeclaim"
                    succeed(environment, *arguments)
