# SPDX-License-Identifier: Apache-2.0
"""Every command ends quietly when the reader of its output is gone, as with `| head -1`."""

import io
import json
import os
from contextlib import closing

import pytest
import yaml

from tests.cli.hostile import CHANGES, CONSUMER, MIX, PROVIDER
from tests.cli.processes import call_program
from tests.cli.test_hostile_texts import CASES, SLOW, spelled_out, surroundings
from treeclaim.cli.main import main
from treeclaim.cli.placement_names import manage, status
from treeclaim.client import Client

GONE = 141
"""What a shell says of a command that SIGPIPE has ended."""

PRINTING = {
    "watch": ["--since", "CURSOR"],
    "claim": ["resources=VCPU:1"],
    "request import": ["REQUESTS"],
    "load": ["HOSTS", "--dry-run"],
    "edit": [PROVIDER],
    "plan defragment": ["--mix", MIX],
    "mix learn": ["learnt", "--dry-run"],
}
"""Arguments with which a command prints on standard output, where `CASES` has none."""

SILENT = {
    "release",
    "condition unset",
    "mix set",
    "mix delete",
    "db stamp",
    "serve",
    "admin",
}
"""Commands that print nothing there."""


HOW = [
    pytest.param(True, id="buffered", marks=pytest.mark.slow),
    pytest.param(False, id="at once"),
]
"""Whether output is buffered, as usual in a pipe; PYTHONUNBUFFERED has each line written at once."""


class Unread(io.TextIOWrapper):
    """The end of a pipe that nobody reads; remembers whether anything was written to it.

    Buffered, writing fails in the middle of a long output, or at the end of a command; else at once.
    """

    is_written = False

    def __init__(self, *, is_buffered):
        reading, writing = os.pipe()
        os.close(reading)
        pipe = os.fdopen(writing, "wb", -1 if is_buffered else 0)
        super().__init__(pipe, encoding="utf-8", write_through=not is_buffered)

    def write(self, text):
        self.is_written = self.is_written or bool(text)
        return super().write(text)


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The environment of commands, and what words in capitals stand for."""
    with surroundings(tmp_path_factory.mktemp("closed")) as (cloud, folder, urls):
        request = {"consumer": CONSUMER, "request": ["resources=VCPU:1"]}
        (folder / "good.jsonl").write_text(json.dumps(request))
        host = {"name": "new", "inventories": {"VCPU": {"total": 1}}}
        (folder / "good.yaml").write_text(yaml.safe_dump({"providers": [host]}))
        with Client(urls["PLAIN"], "admin") as client:
            cursor = client.call("GET", CHANGES, extended=True)["cursor"]
            client.call("PUT", "/traits/CUSTOM_LATER")
            kept = {"requests": {CONSUMER: request["request"]}}
            client.call("POST", "/treeclaim/requests", json=kept, extended=True)
        words = {
            "CURSOR": cursor,
            "REQUESTS": folder / "good.jsonl",
            "HOSTS": folder / "good.yaml",
        }
        yield cloud, folder, urls | words


def ended(program, environment, words, *, is_buffered):
    """The end of a program whose output nobody reads: whether it printed, its exit code, its complaints."""
    with closing(Unread(is_buffered=is_buffered)) as unread:
        result = call_program(program, environment, *words, output=unread)
        return unread.is_written, result.returncode, result.stderr


def require_quiet(program, environment, words, *, is_buffered):
    """Run a program so; if it printed, nothing but the exit code says that nobody read it."""
    is_written, code, complaints = ended(program, environment, words, is_buffered=is_buffered)
    assert (code == GONE) == is_written, (words, complaints)
    assert "roken" not in complaints or code != GONE
    assert "unexpected" not in complaints
    return is_written


@pytest.mark.parametrize("is_buffered", HOW)
@pytest.mark.parametrize("command", CASES)
def test_command_survives_closed_stdout(there, command, is_buffered):
    cloud, folder, stand_for = there
    cases = [(cloud, given) for given in CASES[command]]
    if command in PRINTING:
        plain = cloud | {"TREECLAIM_ENDPOINT": stand_for["PLAIN"]}
        cases.append((plain, PRINTING[command]))
    printed = [
        require_quiet(
            main,
            environment,
            spelled_out(command, given, folder, stand_for),
            is_buffered=is_buffered,
        )
        for environment, given in cases
    ]
    assert any(printed) != (command in SILENT)


@pytest.mark.parametrize("command", CASES | SLOW)
def test_command_help_survives_closed_stdout(there, command):
    assert require_quiet(main, there[0], [*command.split(), "--help"], is_buffered=True)


@pytest.mark.parametrize("is_buffered", HOW)
@pytest.mark.parametrize("words", [["--version"], ["--help"]], ids=" ".join)
def test_version_and_help_survive_closed_stdout(there, words, is_buffered):
    assert require_quiet(main, there[0], words, is_buffered=is_buffered)


@pytest.mark.parametrize("is_buffered", HOW)
@pytest.mark.parametrize(
    ("program", "words"), [(manage, ["db", "version"]), (status, ["upgrade", "check"])]
)
def test_placement_programs_survive_closed_stdout(there, program, words, is_buffered):
    assert require_quiet(program, there[0], words, is_buffered=is_buffered)


@pytest.mark.parametrize(
    "options", [["--topology"], pytest.param([], marks=pytest.mark.slow)], ids=str
)
def test_demo_survives_closed_stdout(there, options):
    assert require_quiet(main, there[0], ["demo", *options], is_buffered=True)
