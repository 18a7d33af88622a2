# SPDX-License-Identifier: Apache-2.0
"""The commands of the page about planning run, one after the other, as they stand there."""

import json
import re
import shlex

import pytest

from tests.cli.processes import call
from tests.cli.services import client_in, served
from tests.paths import ROOT

PAGE = "docs/guide/planning.md"
_BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)

EXPECTED = {
    "treeclaim plan drain host-1": "2 moves (at least 2 needed); the goal is reached",
    "treeclaim survival --domains tree": "7 of 7 survive",
    "treeclaim survival --domains rack-1,rack-2 --explain || true": "1 of 2 survive",
    "treeclaim plan make-room resources_NODE=VCPU:64 --amount 5": "the goal is reached; fit: 4 to 5",
    "treeclaim mix show expected": "resources_NODE=VCPU:64",
    "treeclaim plan defragment --mix expected --max-moves 3 --empty-trees": "empty trees: 3 to 5",
}
"""Return the output of the commands of the page."""

WHOLE = "resources_NODE=VCPU:64"


@pytest.mark.slow
def test_planning_guide_commands_work(tmp_path, monkeypatch):
    page = (ROOT / PAGE).read_text()
    blocks = _BLOCK.findall(page)
    monkeypatch.chdir(tmp_path)
    expected = {"requests": {"node": {"query": WHOLE, "weight": 1}}}
    (tmp_path / "mix.json").write_text(json.dumps(expected))
    outputs = {}
    with served(tmp_path) as environment:
        for command in "".join(blocks).splitlines():
            if "given.json" in command and not (tmp_path / "given.json").exists():
                write_given(environment, tmp_path / "given.json")
            outputs[command] = output_of(environment, command, tmp_path)
    for command, words in EXPECTED.items():
        assert words in outputs[command], (command, outputs[command])


def output_of(environment, command, folder):
    """Run a command, whose answer may be no where it ends with `|| true`; returns what it prints."""
    command, may_fail, _ = command.partition(" || true")
    command, _, file = command.partition(" > ")
    name, *arguments = shlex.split(command)
    assert name == "treeclaim"
    result = call(environment, *arguments)
    # Where not all is well, as that page says, and never a failure.
    assert result.returncode in ((0, 1) if may_fail else (0,)), (
        command,
        result.stdout,
        result.stderr,
    )
    assert not result.stderr or not may_fail, result.stderr
    if file:
        (folder / file).write_text(result.stdout)
    return result.stdout


def write_given(environment, file):
    """Write what is to be taken for granted: a host less, and some that come before."""
    with client_in(environment) as client:
        [row] = client.providers(name="host-3")
    placed = {"requests": [{"query": "resources=VCPU:8", "amount": 4}]}
    file.write_text(json.dumps({"without": [row["uuid"]], "place": placed}))
