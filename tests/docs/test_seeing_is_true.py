# SPDX-License-Identifier: Apache-2.0
"""Every request of the page about seeing has the answer that is shown."""

import json
import re

import pytest

from tests.paths import ROOT
from tests.service import InProcess, client_of, make_application
from treeclaim.client import Client
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology import read_topology

PAGE = ROOT / "docs" / "seeing.md"
_BLOCK = re.compile(r"```(yaml|request|json)\n(.*?)```", re.DOTALL)
_ANYTHING = "…"
_HOST = "7c6c3ea5-5c31-4b3a-9d9c-0d8f6c1f1001"
_SERVER = "7c6c3ea5-5c31-4b3a-9d9c-0d8f6c1f2001"


@pytest.mark.slow
def test_documented_requests_return_the_shown_responses(tmp_path):
    (_, topology), *blocks = _BLOCK.findall(PAGE.read_text())
    file = tmp_path / "topology.yaml"
    file.write_text(topology)
    with Client(adapter=InProcess(client_of(make_application(tmp_path)))) as client:
        apply_topology(client, read_topology(file))
        held = {"allocations": {_HOST: {"resources": {"VCPU": 4}}}}
        client.claim(_SERVER, held, project_id="mine", user_id="me")
        requests = [text for kind, text in blocks if kind == "request"]
        answers = [text for kind, text in blocks if kind == "json"]
        assert len(requests) == len(answers) > 3
        for request, answer in zip(requests, answers, strict=True):
            line, _, body = request.partition("\n")
            method, path = line.split()
            sent = json.loads(body) if body else None
            document = client.call(method, path, json=sent, extended=True)
            assert_like(json.loads(answer), document, path)


def assert_like(shown, document, where):
    """Compare, but for what is shown as an ellipsis."""
    if shown == _ANYTHING:
        return
    if isinstance(shown, dict):
        assert isinstance(document, dict), where
        assert list(shown) == list(document), where
        for name, value in shown.items():
            assert_like(value, document[name], f"{where} {name}")
    elif isinstance(shown, list):
        assert isinstance(document, list), where
        assert len(shown) == len(document), where
        for shown_entry, entry in zip(shown, document, strict=True):
            assert_like(shown_entry, entry, where)
    else:
        assert shown == document, where
