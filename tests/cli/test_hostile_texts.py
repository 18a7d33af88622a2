# SPDX-License-Identifier: Apache-2.0
"""No command prints anything that does more to a terminal than be read, whatever names there are."""

import io
import json
import re
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import yaml

from tests.cli import processes
from tests.cli.hostile import (
    AGGREGATE,
    CLASS,
    COLOUR,
    CONSUMER,
    MARK,
    MIX,
    NAME,
    OWNER,
    PAYLOAD,
    PROVIDER,
    TRAIT,
    harm_in,
    hostile_service,
)
from tests.cli.processes import call
from tests.compute import compute_with, flavor_of, with_cloud
from treeclaim.cli.registry import COMMANDS

FLAVOR = flavor_of(
    f"tiny{PAYLOAD}", 1, 0, 0, extra_specs={f"hw:numa{PAYLOAD}": "x", "accel:device": PAYLOAD}
)
RACK = {"uuid": AGGREGATE, "name": f"rack{PAYLOAD}", "availability_zone": f"zone{PAYLOAD}"}
BROKEN = flavor_of("broken", 1, 0, 0, extra_specs={f"resources{PAYLOAD}:VCPU": PAYLOAD})

CASES = {
    "tree": [[], ["--inventories"], [PROVIDER], [NAME + "x"]],
    "provider show": [[PROVIDER], [f"nobody{PAYLOAD}"]],
    "allocation show": [[CONSUMER], [PAYLOAD]],
    "usage show": [["--project", OWNER], ["--project", f"nobody{PAYLOAD}"]],
    "watch": [["--since", PAYLOAD], ["--in-tree", f"nobody{PAYLOAD}"]],
    "audit": [[], ["--living-from", "FILE", "--repair", "orphaned", "--older-than", "0"]],
    "candidates": [
        [f"resources=VCPU:1,{CLASS}:1", f"required={TRAIT}"],
        [f"resources=VCPU:1,{PAYLOAD}:1"],
        [f"{PAYLOAD}=1"],
        ["--server-flavor", FLAVOR["name"]],
        ["--server-flavor", "broken"],
        ["--server-flavor", f"nobody{PAYLOAD}"],
        ["--flavor", f"vcpus={PAYLOAD}"],
    ],
    "explain": [
        [f"resources=VCPU:99,{CLASS}:1"],
        ["resources=VCPU:1", f"required=!{TRAIT}"],
        ["resources=VCPU:1", "--tree", f"nobody{PAYLOAD}"],
    ],
    "fit": [
        ["--flavors", "FLAVORS", "--domains", "tree"],
        ["resources=VCPU:1", "--domains", AGGREGATE],
        ["resources=VCPU:1", "--domains", f"nobody{PAYLOAD}"],
    ],
    "plan drain": [
        [PROVIDER],
        [PROVIDER, "--explain", "--max-moves", "1"],
        [PROVIDER, "--nova"],
        ["--leave", "--explain"],
        [f"nobody{PAYLOAD}"],
        [PROVIDER, "--given", f"nofile{PAYLOAD}"],
        [PROVIDER, "--consumer-type", PAYLOAD],
    ],
    "plan make-room": [["resources=VCPU:1"], [f"resources=VCPU:1{PAYLOAD}"]],
    "plan defragment": [["--mix", f"nothing{PAYLOAD}"]],
    "survival": [
        ["--all", "--explain"],
        ["--domains", AGGREGATE],
        ["--domains", f"nobody{PAYLOAD}"],
        ["--given", f"nofile{PAYLOAD}"],
        ["--consumer-type", PAYLOAD],
    ],
    "place": [
        ["resources=VCPU:1", "--dry-run", "--amount", "2"],
        ["resources=VCPU:99", "--dry-run"],
        ["resources=VCPU:1", "--consumer", PAYLOAD],
    ],
    "claim": [["resources=VCPU:1", "--consumer", CONSUMER], ["resources=VCPU:1", "--number", "9"]],
    "hold create": [
        ["resources=VCPU:1", "--dry-run", "--amount", "2"],
        ["resources=VCPU:1", "--until", PAYLOAD],
        ["resources=VCPU:99"],
    ],
    "condition set": [
        [PROVIDER, "CLEANING", "--reason", PAYLOAD, "--dry-run"],
        # It never begins: nobody uses more there.
        [PROVIDER, "CLEANING", "--reason", PAYLOAD, "--on-use"],
        [PROVIDER, PAYLOAD],
        [PROVIDER, "CLEANING", "--until", PAYLOAD],
        [f"nobody{PAYLOAD}", "CLEANING"],
    ],
    "condition unset": [[PROVIDER, PAYLOAD], [f"nobody{PAYLOAD}", "CLEANING"]],
    "condition list": [[], ["--in-tree", f"nobody{PAYLOAD}"]],
    "aggregate list": [[]],
    "aggregate set": [[PAYLOAD, "--name", PAYLOAD], [AGGREGATE, "--name", PAYLOAD, "--dry-run"]],
    "aggregate import": [
        ["FILE"],
        ["FILE", "--dry-run"],
        [f"nofile{PAYLOAD}"],
        ["nova", "--dry-run"],
    ],
    "mix set": [["day", "FILE"], ["day", f"nofile{PAYLOAD}"], [PAYLOAD, "FILE"]],
    "mix show": [[MIX], [PAYLOAD]],
    "mix list": [[]],
    "mix delete": [[PAYLOAD]],
    "mix learn": [["learnt", "--dry-run"], ["learnt", "--since", PAYLOAD]],
    "hold list": [[], ["--in-tree", f"nobody{PAYLOAD}"], ["--project", PAYLOAD]],
    "request import": [["FILE"], ["WRONG"], [f"nofile{PAYLOAD}"]],
    "release": [[PAYLOAD], ["00000000-0000-0000-0000-00000000000f"]],
    "load": [["FILE", "--dry-run", "--prune"], ["FILE"], [f"nofile{PAYLOAD}"], ["WRONG"]],
    "edit": [[PROVIDER], [f"nobody{PAYLOAD}"]],
    "copy": [
        ["--from", "HOSTILE", "--to", "PLAIN"],
        ["--from", "HOSTILE", "--to", "PLAIN", "--compare"],
    ],
    "completion": [["bash"], ["zsh"], ["fish"], ["tcsh"], ["powershell"], [PAYLOAD]],
    "config check": [[], ["--all"], ["--config-file", f"nofile{PAYLOAD}"], [f"--{PAYLOAD}"]],
    "config sample": [[]],
    "policy sample": [[]],
    "db sync": [[]],
    "db version": [[]],
    "db stamp": [[PAYLOAD]],
    "db check": [[]],
    "db prune": [["--keep-hours", PAYLOAD], []],
    "db online_data_migrations": [[], ["--max-count", PAYLOAD]],
    "upgrade check": [[]],
    "serve": [["--unix-socket", f"/nofolder{PAYLOAD}/socket"], ["--port", PAYLOAD]],
    "compare": [
        ["http://127.0.0.1:1", "http://127.0.0.1:1", f"--{PAYLOAD}"],
        ["HOSTILE", "PLAIN"],
        ["HOSTILE", PAYLOAD],
        ["http://127.0.0.1:1", "http://127.0.0.1:1", "--requests", PAYLOAD],
    ],
    "admin": [["--config-file", f"nofile{PAYLOAD}"]],
}
"""Arguments of each command; words in capitals stand for what the test makes."""

SLOW = {"demo": [["FILE"]]}
"""The same, of commands that start a service."""

WITHOUT_NAMES = {
    "config sample", "policy sample", "db sync", "db version", "upgrade check",
}  # fmt: skip
"""Commands that print nothing but words of ours."""


def test_every_command_has_a_hostile_text_case():
    assert {entry.alias or name for name, entry in COMMANDS.items()} == CASES.keys() | SLOW.keys()


class Terminal(io.StringIO):
    """Where a person looks at what a command prints."""

    def isatty(self):
        return True


@contextmanager
def surroundings(folder):
    """The environment of commands, the folder with their files, and the addresses of services."""
    write_files(folder)
    with (
        hostile_service(folder) as (environment, plain),
        compute_with(flavors=(FLAVOR, BROKEN), aggregates=(RACK,)) as (_, url),
    ):
        hostile = environment["TREECLAIM_ENDPOINT"]
        cloud = with_cloud(environment, folder, url, placement_endpoint_override=hostile)
        cloud["EDITOR"] = str(folder / "editor")
        yield cloud, folder, {"HOSTILE": hostile, "PLAIN": plain}


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """The cases of a command, with a hostile option too."""
    with surroundings(tmp_path_factory.mktemp("hostile")) as (cloud, folder, urls):
        yield cloud | {"OS_TREECLAIM__METRICS_OF_AGGREGATES": PAYLOAD}, folder, urls


def write_files(folder):
    entry = {
        "name": f"loaded{PAYLOAD}",
        "traits": [f"CUSTOM_NEW{PAYLOAD}"],
        "inventories": {f"CUSTOM_NEW{PAYLOAD}": {"total": 1}},
        "aggregates": [f"rack{PAYLOAD}"],
    }
    there = {"name": f"other{PAYLOAD}", "uuid": PROVIDER, "traits": [], "inventories": {}}
    documents = {
        "topology.yaml": {"providers": [entry, there]},
        "wrong.yaml": {"providers": [entry | {f"unknown{PAYLOAD}": PAYLOAD}]},
        "flavors.yaml": {f"flavor{PAYLOAD}": {"vcpus": 1}},
    }
    for name, document in documents.items():
        (folder / name).write_text(yaml.safe_dump(document))
    (folder / "living.json").write_text(json.dumps({f"KIND{PAYLOAD}": []}))
    line = {"consumer": CONSUMER, "request": [f"resources={PAYLOAD}:1"]}
    (folder / "requests.jsonl").write_text(json.dumps(line))
    mix = {"requests": {f"request{PAYLOAD}": {"query": f"resources={PAYLOAD}:1", "weight": 1}}}
    (folder / "names.json").write_text(json.dumps({AGGREGATE: f"renamed{PAYLOAD}"}))
    (folder / "mix.json").write_text(json.dumps(mix))
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/total: 8/total: 9/" "$1"\n')
    editor.chmod(0o755)


_FILES = {
    "audit": "living.json",
    "request import": "requests.jsonl",
    "mix set": "mix.json",
    "aggregate import": "names.json",
}
"""What FILE stands for, where that is no topology."""


def spelled_out(command, given, folder, urls):
    """The arguments with paths and addresses for the words that stand for them."""
    files = {
        "FILE": folder / _FILES.get(command, "topology.yaml"),
        "WRONG": folder / "wrong.yaml",
        "FLAVORS": folder / "flavors.yaml",
        "MIX": folder / "mix.json",
    }
    return [str((files | urls).get(word, word)) for word in (*command.split(), *given)]


def texts_of(command, cases, there, terminal=False):
    """The output of a command on each stream, in each of its cases."""
    environment, folder, urls = there
    output = Terminal if terminal else io.StringIO
    for case in cases:
        variables = environment | (
            {"TERM": "xterm-256color", "COLUMNS": "9999"} if terminal else {}
        )
        with patch.object(processes.io, "StringIO", output):
            result = call(variables, *spelled_out(command, case, folder, urls))
        yield from ((case, text) for text in (result.stdout, result.stderr))


@pytest.mark.parametrize("command", CASES)
def test_command_output_has_no_control_sequences(there, command):
    printed = list(texts_of(command, CASES[command], there))
    assert [(given, harm) for given, text in printed if (harm := harm_in(text))] == []
    assert [text for _, text in printed if "unexpected" in text or "Traceback" in text] == []
    seen = [text for _, text in printed if MARK in text]
    assert seen or command in WITHOUT_NAMES


@pytest.mark.parametrize("command", CASES)
def test_terminal_output_has_only_own_control_sequences(there, command):
    own = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
    for given, text in texts_of(command, CASES[command], there, terminal=True):
        assert COLOUR not in text, given
        # What moves the cursor within a line is progress, which is ours.
        assert harm_in(own.sub("", text).replace("\r", "")) == [], given


FORMATS = {
    "tree": [],
    "provider show": [PROVIDER],
    "allocation show": [CONSUMER],
    "usage show": ["--project", OWNER],
    "audit": [],
    "candidates": [f"resources=VCPU:1,{CLASS}:1"],
    "explain": [f"resources=VCPU:99,{CLASS}:1"],
    "fit": ["--flavors", "FLAVORS"],
    "place": ["resources=VCPU:1", "--dry-run"],
    "hold create": ["resources=VCPU:1", "--dry-run"],
    "hold list": [],
    "condition list": [],
    "aggregate list": [],
    "mix show": [MIX],
    "mix list": [],
    "survival": ["--all"],
}
"""Arguments of each command that has formats."""

SINGLE = ("allocation show", "explain", "provider show")
"""Commands that show one thing, and so can print lines for a shell."""


@pytest.mark.parametrize("command", FORMATS)
def test_each_format_can_only_be_read(there, command):
    for name in ("value", "json", "yaml", "shell" if command in SINGLE else "csv"):
        arguments = [*FORMATS[command], "-f", name]
        (_, printed), (_, errors) = texts_of(command, [arguments], there)
        # Long texts of YAML are folded within their quotes.
        text = printed.replace("\n", " ") if name == "yaml" else printed
        assert harm_in(text + errors) == [], name
        if command not in ("place", "hold create"):
            assert MARK in (str(json.loads(printed)) if name == "json" else printed + errors), name


@pytest.mark.slow
@pytest.mark.parametrize("command", SLOW)
def test_service_commands_print_no_control_sequences(there, command):
    printed = list(texts_of(command, SLOW[command], there))
    assert [(given, harm) for given, text in printed if (harm := harm_in(text))] == []
