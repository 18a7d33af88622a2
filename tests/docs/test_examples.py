# SPDX-License-Identifier: Apache-2.0
"""Examples of pages run, if they are marked with `<!-- run: tests/docs/test_examples.py -->`.

The blocks of a guide run one after the other, on the cloud in its block of YAML. A block without a language, and each
block of a page without YAML, runs alone on the example with two racks.
"""

import json
import re
import shlex
import shutil
import subprocess
import uuid
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import call
from tests.cli.services import open_client, run_service, run_successful_command
from tests.docs.test_answers import sections
from tests.paths import EXAMPLE, ROOT
from treeclaim.client import ClientError
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology

pytestmark = pytest.mark.slow

MARK = "<!-- run: tests/docs/test_examples.py -->\n"
BLOCK = re.compile(
    rf"(?P<mark>{MARK}\n?)?^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
GUIDES = ROOT / "docs" / "guide"
SERVED_BY_PAGES = "http://127.0.0.1:8778"
CONSUMER = "11464056-3f84-4686-a4bb-675978d3354d"
PROJECT = "1f7e32c5a4c14d33b3c5c6cf0a2f0b3c"
WHOLE_NODE = "resources_NODE=VCPU:64"


def marked_blocks(page):
    """Return the kind and the text of each block that runs."""
    return [
        (match["kind"], match["text"])
        for match in BLOCK.finditer(page.read_text())
        if match["mark"]
    ]


def assumptions(client):
    """A host less, and some servers more."""
    [host] = client.providers(name="host-3")
    placed = {"requests": [{"query": "resources=VCPU:8", "amount": 4}]}
    return {"without": [host["uuid"]], "place": placed}


FILES = {
    "given.json": assumptions,
    "mix.json": lambda _: {"requests": {"node": {"query": WHOLE_NODE, "weight": 1}}},
    "requests.jsonl": lambda _: {"consumer": str(uuid.uuid4()), "request": ["resources=VCPU:4"]},
    "m1.large.yaml": lambda _: {"vcpus": 1, "ram": 256},
}
"""Functions that return the files that commands name."""


class Examples:
    """Runs examples in the working directory.

    Attributes:
        names: The global names for blocks of Python.
        outputs: The output of each command.
    """

    def __init__(self, environment, client):
        self.environment, self.client, self.outputs = environment, client, {}
        self.names: dict[str, Any] = {
            "client": client,
            "ENDPOINT": environment["TREECLAIM_ENDPOINT"],
            "consumers": lambda count: [str(uuid.uuid4()) for _ in range(count)],
            "hosts": lambda response: [
                self.names["names"][next(iter(row["allocations"]))]
                for row in response["allocation_requests"]
            ],
            "ClientError": ClientError,
            "consumer": str(uuid.uuid4()),
            "project": "p",
            "user": "u",
        }

    def load(self, topology):
        apply_topology(self.client, parse_topology(topology, "page"))
        self.names["names"] = {row["uuid"]: row["name"] for row in self.client.providers()}
        self.names["uuids"] = {name: uuid for uuid, name in self.names["names"].items()}

    def run(self, kind, text):
        text = text.replace(SERVED_BY_PAGES, self.environment["TREECLAIM_ENDPOINT"])
        if kind == "python":
            exec(compile(text, "page", "exec"), self.names)
            return
        for line in text.replace("\\\n", " ").splitlines():
            for name, document_of in FILES.items():
                if name in line:
                    Path(name).write_text(json.dumps(document_of(self.client)))
            self.run_command(line)

    def run_command(self, line):
        """Run a command, which may fail if it ends with `|| true`."""
        command_line, may_fail, _ = line.partition(" || true")
        command_line, _, file = command_line.partition(" > ")
        command, *arguments = shlex.split(command_line, comments=True) or ["#"]
        if command.endswith("treeclaim"):
            result = call(self.environment, *arguments)
            assert result.returncode in ((0, 1) if may_fail else (0,)), (line, result)
            self.outputs[line] = result.stdout
            if file:
                Path(file).write_text(result.stdout)
        elif command == "cp":
            shutil.copy(*arguments)
        elif command == "curl":
            shown = subprocess.run([command, *arguments], stdout=subprocess.PIPE, check=True)
            assert json.loads(shown.stdout)["allocation_requests"]
        else:
            # The service is that of this test.
            assert line.startswith(("make serve", "#")) or not line.strip(), line


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """Runs examples on an empty service."""
    monkeypatch.chdir(tmp_path)
    with run_service(tmp_path) as environment, open_client(environment) as client:
        yield Examples(environment | {"EDITOR": "true", "VISUAL": "true"}, client)


ALONE = [
    pytest.param(kind, text, id=f"{page.stem}: {text.splitlines()[0][:60]}")
    for page in (ROOT / "README.md", GUIDES / "asking.md", GUIDES / "placing.md")
    for kind, text in marked_blocks(page)
    if not kind or page.stem == "asking"
]
RACKS = """
providers:
- {name: "r-{n}", count: 60, aggregates: [rack-2], inventories: {VCPU: 4, MEMORY_MB: 9999}}
- {name: "s-{n}", count: 60, aggregates: [rack-1], inventories: {VCPU: 4, MEMORY_MB: 9999}}
"""


@pytest.mark.parametrize(("kind", "text"), ALONE)
def test_block_succeeds_on_the_example(examples, tmp_path, kind, text):
    shutil.copytree(EXAMPLE.parent, tmp_path / "examples")
    run_successful_command(examples.environment, "load", str(EXAMPLE))
    examples.load(RACKS)
    first = examples.client.candidates("resources=VCPU:1")["allocation_requests"][0]
    examples.client.claim(CONSUMER, first, project_id=PROJECT, user_id="u")
    examples.run(kind, text)


EXPECTED = {
    "planning": {
        "treeclaim plan drain host-1": "2 moves (at least 2 needed); the goal is reached",
        "treeclaim survival --domains tree": "7 of 7 survive",
        "treeclaim survival --domains rack-1,rack-2 --explain || true": "1 of 2 survive",
        f"treeclaim plan make-room {WHOLE_NODE} --amount 5": "the goal is reached; fit: 4 to 5",
        "treeclaim mix show expected": WHOLE_NODE,
        "treeclaim plan defragment --mix expected --max-moves 3 --empty-trees": "empty trees: 3 to 5",
    },
    "devices": {
        "treeclaim place resources_A=PGPU:1": "1 placed",
        "treeclaim condition list": "wiped between tenants",
        "treeclaim explain resources_A=PGPU:1": "uncorrectable ECC errors",
        "treeclaim candidates resources_A=PGPU:1": "gpu-2",
        "treeclaim plan drain --leave": "1 move (at least 1 needed); the goal is reached; consumers left: 1 to 0",
    },
    "placing": {},
    "holds": {},
}
"""Parts of the output of commands, by guide."""


@pytest.mark.parametrize("name", EXPECTED)
def test_guide_examples_succeed_in_their_order(examples, name):
    page = GUIDES / f"{name}.md"
    parts = [BLOCK.findall(page.read_text())]
    if name == "devices":
        parts = [blocks for title, blocks in sections() if title.startswith("Numbers")]
    for *_, kind, text in chain.from_iterable(parts):
        if kind == "yaml":
            examples.load(text)
    for kind, text in marked_blocks(page):
        if kind:
            examples.run(kind, text)
    for command, words in EXPECTED[name].items():
        assert words in examples.outputs[command], (command, examples.outputs[command])
    assert "gpu-1" not in examples.outputs.get("treeclaim candidates resources_A=PGPU:1", "")


def test_python_examples_of_the_watching_page_run(examples, capsys):
    examples.client.call("POST", "/resource_providers", {"name": "host"})
    for kind, text in marked_blocks(ROOT / "docs" / "watching.md"):
        examples.run(kind, text)
    assert capsys.readouterr().out.splitlines() == ["1 providers", "traits or classes changed"]
