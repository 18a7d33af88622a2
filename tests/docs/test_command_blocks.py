# SPDX-License-Identifier: Apache-2.0
"""Blocks of commands of pages succeed: those above which is `<!-- run: tests/docs/test_command_blocks.py -->`."""

import json
import re
import shlex
import shutil
import subprocess
import uuid

import pytest

from tests.cli.services import client_in, served, succeed
from tests.paths import EXAMPLE, ROOT

_PAGES = sorted(
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"))
    if not {"contract", "decisions", "site"} & set(page.parts)
)
_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*) -->\n\n?)?^```(?P<kind>sh|bash|console|python|)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SHOWN = re.compile(r"^```\{?(?:\w+)\}?\n.*?^```$", re.MULTILINE | re.DOTALL)
_HERE = "tests/docs/test_command_blocks.py"


def blocks_of(page):
    """The kind, mark and text of each block of commands."""
    # A block in another language would end where a block of commands begins.
    text = _SHOWN.sub(lambda shown: shown[0] if _BLOCK.match(shown[0]) else "", page.read_text())
    return [(match["kind"], match["mark"] or "", match["text"]) for match in _BLOCK.finditer(text)]


def test_marked_command_blocks_are_found():
    assert len(RUN_HERE) >= 4


RUN_HERE = [
    pytest.param(kind, text, id=f"{page.relative_to(ROOT)}: {text.splitlines()[0][:60]}")
    for page in _PAGES
    for kind, mark, text in blocks_of(page)
    if mark == f"run: {_HERE}"
]

CONSUMER = "11464056-3f84-4686-a4bb-675978d3354d"
NAMES = {"consumer": str(uuid.uuid4()), "project": "p", "user": "u"}
PROJECT = "1f7e32c5a4c14d33b3c5c6cf0a2f0b3c"


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A service with the example, a second rack, a consumer, and the files that pages name."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLE.parent, tmp_path / "examples")
    (tmp_path / "m1.large.yaml").write_text("vcpus: 1\nram: 256\n")
    rack = 'providers:\n- {name: "r-{n}", count: 60, aggregates: [rack-2], inventories: {VCPU: 4, MEMORY_MB: 9999}}\n'
    (tmp_path / "rack.yaml").write_text(
        rack + rack.split("\n", 1)[1].replace("r-{n}", "s-{n}").replace("rack-2", "rack-1")
    )
    with served(tmp_path) as service:
        succeed(service, "load", str(EXAMPLE))
        succeed(service, "load", "rack.yaml")
        with client_in(service) as client:
            first = client.candidates("resources=VCPU:1")["allocation_requests"][0]
            client.claim(CONSUMER, first, project_id=PROJECT, user_id="u")
        yield service | {"EDITOR": "true", "VISUAL": "true"}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "text"), RUN_HERE)
def test_the_commands_of_a_page_succeed(environment, kind, text):
    endpoint = environment["TREECLAIM_ENDPOINT"]
    if kind == "python":
        exec(compile(text.replace("http://127.0.0.1:8778", endpoint), "page", "exec"), dict(NAMES))
        return
    for line in text.replace("\\\n", " ").splitlines():
        command, *arguments = shlex.split(line, comments=True) or ["#"]
        if command.endswith("treeclaim"):
            succeed(environment, *arguments)
        elif command == "cp":
            shutil.copy(*arguments)
        elif command == "curl":
            rewritten = [
                argument.replace("http://127.0.0.1:8778", endpoint) for argument in arguments
            ]
            shown = subprocess.run(
                ["curl", *rewritten], stdout=subprocess.PIPE, text=True, check=True
            )
            assert json.loads(shown.stdout)["allocation_requests"]
        else:
            # The service is that of this test.
            assert line.startswith(("make serve", "#")) or not line.strip(), line
