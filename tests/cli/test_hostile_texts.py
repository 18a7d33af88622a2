# SPDX-License-Identifier: Apache-2.0
"""Commands print no control sequences of foreign names to a terminal."""

import io
import json
import re
from unittest.mock import patch

import pytest

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
    find_harm,
    hostile_service,
)
from tests.cli.processes import call
from tests.compute import compute_with, flavor_of, with_cloud
from treeclaim.cli.registry import COMMANDS, find_command

FLAVOR = flavor_of(
    f"tiny{PAYLOAD}", 1, 0, 0, extra_specs={f"hw:numa{PAYLOAD}": "x", "accel:device": PAYLOAD}
)
RACK = {"uuid": AGGREGATE, "name": f"rack{PAYLOAD}", "availability_zone": f"zone{PAYLOAD}"}
BROKEN = flavor_of("broken", 1, 0, 0, extra_specs={f"resources{PAYLOAD}:VCPU": PAYLOAD})

LINES = """
tree --inventories
tree NAMEx
provider show PROVIDER
allocation show CONSUMER
watch --since PAYLOAD
audit
audit --living-from LIVING --repair orphaned --older-than 0
candidates resources=VCPU:1,CLASS:1 required=TRAIT
candidates resources=VCPU:1,PAYLOAD:1
candidates PAYLOAD=1
candidates --server-flavor FLAVOR
candidates --server-flavor broken
explain resources=VCPU:99,CLASS:1
explain resources=VCPU:1 required=!TRAIT
fit --flavors FLAVORS --domains tree
fit resources=VCPU:1 --domains AGGREGATE
plan drain PROVIDER --explain --max-moves 1
plan drain PROVIDER --nova
plan drain PROVIDER --given nofilePAYLOAD
plan make-room resources=VCPU:1PAYLOAD
plan defragment --mix nothingPAYLOAD
survival --all --explain
survival --domains AGGREGATE
place resources=VCPU:1 --dry-run --amount 2
place resources=VCPU:99 --dry-run
claim resources=VCPU:1 --consumer CONSUMER
claim resources=VCPU:1 --number 9
hold create resources=VCPU:1 --dry-run --amount 2
hold list
condition set PROVIDER CLEANING --reason PAYLOAD --on-use
condition set PROVIDER PAYLOAD
condition unset PROVIDER PAYLOAD
condition list
aggregate list
aggregate set AGGREGATE --name PAYLOAD --dry-run
aggregate import NAMES
aggregate import nova --dry-run
mix set day DAY
mix show MIX
mix list
mix delete PAYLOAD
mix learn learnt --dry-run
mix learn learnt --since PAYLOAD
request import REQUESTS
request import WRONG
release PAYLOAD
load TOPOLOGY --dry-run --prune
load TOPOLOGY
load WRONG
load nofilePAYLOAD
edit PROVIDER
copy --from HOSTILE --to PLAIN
copy --from HOSTILE --to PLAIN --compare
config check
config check --config-file nofilePAYLOAD
config sample
policy sample
db sync
db version
db reset-feed
db stamp PAYLOAD
db check
db prune PAYLOAD
db online_data_migrations --max-count PAYLOAD
upgrade check
serve --unix-socket /nofolderPAYLOAD/socket
compare HOSTILE PLAIN
compare HOSTILE PAYLOAD
admin --config-file nofilePAYLOAD
"""
"""Command lines; words in capitals stand for hostile texts, files, and addresses of services."""

CASES = {}
for _line in LINES.strip().splitlines():
    CASES.setdefault(find_command(_line.split())[0], []).append(_line)

WITHOUT_NAMES = {
    "config sample", "policy sample", "db sync", "db version", "db reset-feed", "upgrade check",
}  # fmt: skip
"""Commands that print nothing but words of ours."""


def test_every_command_has_a_hostile_text_case():
    names = {entry.alias or name for name, entry in COMMANDS.items()}
    assert names == CASES.keys() | {"demo"}


class Terminal(io.StringIO):
    """The kinds of terminal and file that commands write to."""

    def isatty(self):
        return True


@pytest.fixture(scope="module")
def hostile_cloud(tmp_path_factory):
    """The environment of commands, and the texts for words in capitals."""
    folder = tmp_path_factory.mktemp("hostile")
    texts = {
        "PAYLOAD": PAYLOAD, "PROVIDER": PROVIDER, "CONSUMER": CONSUMER, "OWNER": OWNER, "CLASS": CLASS,
        "TRAIT": TRAIT, "FLAVOR": FLAVOR["name"], "AGGREGATE": AGGREGATE, "MIX": MIX, "NAME": NAME,
    }  # fmt: skip
    files = write_files(folder)
    with (
        hostile_service(folder) as (environment, plain),
        compute_with(flavors=(FLAVOR, BROKEN), aggregates=(RACK,)) as (_, url),
    ):
        hostile = environment["TREECLAIM_ENDPOINT"]
        cloud = with_cloud(environment, folder, url, placement_endpoint_override=hostile)
        cloud["EDITOR"] = str(folder / "editor")
        cloud["OS_TREECLAIM__METRICS_OF_AGGREGATES"] = PAYLOAD
        yield cloud, texts | files | {"HOSTILE": hostile, "PLAIN": plain}


def write_files(folder):
    """Write files with hostile texts, and an editor; return paths by the words in capitals."""
    entry = {
        "name": f"loaded{PAYLOAD}",
        "traits": [f"CUSTOM_NEW{PAYLOAD}"],
        "inventories": {f"CUSTOM_NEW{PAYLOAD}": {"total": 1}},
        "aggregates": [f"rack{PAYLOAD}"],
    }
    provider = {"name": f"other{PAYLOAD}", "uuid": PROVIDER, "traits": [], "inventories": {}}
    mix = {"requests": {f"request{PAYLOAD}": {"query": f"resources={PAYLOAD}:1", "weight": 1}}}
    documents = {
        "TOPOLOGY": {"providers": [entry, provider]},
        "WRONG": {"providers": [entry | {f"unknown{PAYLOAD}": PAYLOAD}]},
        "FLAVORS": {f"flavor{PAYLOAD}": {"vcpus": 1}},
        "LIVING": {f"KIND{PAYLOAD}": []},
        "REQUESTS": {"consumer": CONSUMER, "request": [f"resources={PAYLOAD}:1"]},
        "NAMES": {AGGREGATE: f"renamed{PAYLOAD}"},
        "DAY": mix,
    }
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document))
    editor = folder / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/total: 8/total: 9/" "$1"\n')
    editor.chmod(0o755)
    return {name: str(folder / name) for name in documents}


def run_lines(lines, hostile_cloud, terminal=False):
    """Yield each command line with the text of each stream."""
    environment, words = hostile_cloud
    output = Terminal if terminal else io.StringIO
    variables = environment | ({"TERM": "xterm-256color", "COLUMNS": "9999"} if terminal else {})
    for line in lines:
        arguments = [
            re.sub("[A-Z]{3,}", lambda match: words.get(match[0], match[0]), word)
            for word in line.split()
        ]
        with patch.object(processes.io, "StringIO", output):
            result = call(variables, *arguments)
        yield from ((line, text) for text in (result.stdout, result.stderr))


@pytest.mark.parametrize("command", CASES)
def test_command_output_has_no_control_sequences(hostile_cloud, command):
    printed = list(run_lines(CASES[command], hostile_cloud))
    assert [(line, harm) for line, text in printed if (harm := find_harm(text))] == []
    assert [text for _, text in printed if "unexpected" in text or "Traceback" in text] == []
    marked = [text for _, text in printed if MARK in text]
    assert marked or command in WITHOUT_NAMES


@pytest.mark.parametrize("command", CASES)
def test_terminal_output_has_no_foreign_control_sequences(hostile_cloud, command):
    styles = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
    for line, text in run_lines(CASES[command], hostile_cloud, terminal=True):
        assert COLOUR not in text, line
        # Only progress moves the cursor within a line.
        assert find_harm(styles.sub("", text).replace("\r", "")) == [], line


FORMATS = (
    "tree", "provider show PROVIDER", "allocation show CONSUMER", "audit",
    "candidates resources=VCPU:1,CLASS:1", "explain resources=VCPU:99,CLASS:1", "fit --flavors FLAVORS",
    "hold list", "condition list", "aggregate list", "mix show MIX", "mix list", "survival --all",
)  # fmt: skip
"""Command lines with formats."""

SINGLE = ("allocation show", "explain", "provider show")
"""Commands that show one item, and therefore have the format for shells."""


@pytest.mark.parametrize("line", FORMATS)
def test_each_format_has_no_control_sequences(hostile_cloud, line):
    for name in ("value", "json", "yaml", "shell" if line.startswith(SINGLE) else "csv"):
        (_, printed), (_, errors) = run_lines([f"{line} -f {name}"], hostile_cloud)
        # Long texts of YAML are folded within their quotes.
        text = printed.replace("\n", " ") if name == "yaml" else printed
        assert find_harm(text + errors) == [], name
        assert MARK in (str(json.loads(printed)) if name == "json" else printed + errors), name
