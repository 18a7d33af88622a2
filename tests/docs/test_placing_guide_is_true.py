# SPDX-License-Identifier: Apache-2.0
"""The examples of the page about placing run, one after the other, as they stand there."""

import re
import uuid

from tests.paths import ROOT
from tests.service import InProcess, client_of, make_application
from treeclaim.client import Client, ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology import read_topology

GUIDE = (ROOT / "docs" / "guide" / "placing.md").read_text()
_BLOCK = re.compile(r"```(yaml|python)\n(.*?)```", re.DOTALL)


def test_placing_guide_examples_work(tmp_path):
    blocks = _BLOCK.findall(GUIDE)
    (topology,) = [text for kind, text in blocks if kind == "yaml"]
    file = tmp_path / "topology.yaml"
    file.write_text(topology)
    with Client(adapter=InProcess(client_of(make_application(tmp_path)))) as client:
        apply_topology(client, read_topology(file))
        names = {row["uuid"]: row["name"] for row in client.providers()}
        known = {
            "client": client,
            "hosts": lambda found: [
                names[next(iter(row["allocations"]))] for row in found["allocation_requests"]
            ],
            "consumers": lambda count: [str(uuid.uuid4()) for _ in range(count)],
            "ClientError": ClientError,
        }
        examples = [text for kind, text in blocks if kind == "python"]
        assert examples
        for text in examples:
            exec(compile(text, "docs/guide/placing.md", "exec"), known)
