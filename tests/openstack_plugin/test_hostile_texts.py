# SPDX-License-Identifier: Apache-2.0
"""No command of the plugin prints anything that does more than be read, in any format."""

import subprocess
from functools import partial
from importlib.metadata import entry_points

import pytest

from tests.cli.hostile import (
    CLASS,
    CONSUMER,
    MARK,
    MIX,
    OWNER,
    PAYLOAD,
    PROVIDER,
    harm_in,
    hostile_service,
)
from tests.compute import compute_with, with_cloud
from treeclaim.cli.command import CloudCommand
from treeclaim.cli.registry import COMMANDS, all_commands

GROUP = "openstack.treeclaim.v1"
CASES = {
    "aggregate import": [f"nofile{PAYLOAD}"],
    "aggregate list": [],
    "aggregate set": [PAYLOAD, "--name", "x"],
    "allocation show": [CONSUMER],
    "audit": [],
    "candidates": [f"resources=VCPU:1,{CLASS}:1"],
    "claim": ["resources=VCPU:1", "--consumer", PAYLOAD],
    "condition list": [],
    "condition set": [f"nobody{PAYLOAD}", "A"],
    "condition unset": [f"nobody{PAYLOAD}", "A"],
    "edit": [f"nobody{PAYLOAD}"],
    "explain": [f"resources=VCPU:99,{CLASS}:1"],
    "fit": ["resources=VCPU:1", "--domains", "tree"],
    "hold create": ["resources=VCPU:1", "--dry-run"],
    "hold list": [],
    "load": [f"nofile{PAYLOAD}"],
    "mix delete": [f"no{PAYLOAD}"],
    "mix learn": ["learnt", "--since", PAYLOAD],
    "mix list": [],
    "mix set": ["day", f"nofile{PAYLOAD}"],
    "mix show": [MIX],
    "place": ["resources=VCPU:1", "--dry-run"],
    "plan defragment": ["--mix", f"nothing{PAYLOAD}"],
    "plan drain": [f"nobody{PAYLOAD}"],
    "plan make-room": [f"resources=VCPU:1&required={PAYLOAD}"],
    "provider show": [PROVIDER],
    "release": [PAYLOAD],
    "request import": [f"nofile{PAYLOAD}"],
    "survival": ["--all"],
    "tree": [PROVIDER],
    "usage show": ["--project", OWNER],
    "watch": ["--since", PAYLOAD],
}
"""Arguments of each command, by its shortest name."""

REFUSED = {
    "aggregate import",
    "aggregate set",
    "claim",
    "condition set",
    "condition unset",
    "edit",
    "load",
    "mix delete",
    "mix learn",
    "mix set",
    "plan defragment",
    "plan drain",
    "plan make-room",
    "release",
    "request import",
    "watch",
}
"""Commands that fail here with a hostile word."""

SINGLE = ("allocation show", "explain", "provider show")
"""Commands that show one thing, and so can be asked for lines for a shell."""


@pytest.fixture(scope="module")
def openstack(shell, tmp_path_factory):
    """The command, in a cloud whose names are hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    with hostile_service(folder) as (environment, _), compute_with() as (_, url):
        endpoint = environment.pop("TREECLAIM_ENDPOINT")
        login = with_cloud(environment, folder, url, placement_endpoint_override=endpoint)
        run = partial(shell.run, environment=login)
        # It never begins: nobody uses more there.
        given = ("CLEANING", "--on-use", "--reason", PAYLOAD)
        assert run("treeclaim", "condition", "set", PROVIDER, *given).returncode == 0
        yield run


def words(command):
    return ["treeclaim", *command.split(), *CASES[command]]


def test_each_command_of_a_cloud_is_a_command_of_openstack_too():
    targets = {each.name.replace("_", " "): each.value for each in entry_points(group=GROUP)}
    assert targets == {
        f"treeclaim {name}": f"treeclaim.cli.{entry.target}"
        for name, entry in all_commands().items()
        if issubclass(entry.load(), CloudCommand)
    }
    names = {entry.alias or name for name, entry in COMMANDS.items()}
    assert CASES.keys() == {name for name in names if f"treeclaim {name}" in targets}


@pytest.mark.parametrize("command", CASES)
def test_a_table_can_only_be_read(openstack, command):
    done = openstack(*words(command))
    assert MARK in (done.stderr if command in REFUSED else done.stdout), done.stderr
    assert harm_in(done.stdout + done.stderr) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in CASES if command not in REFUSED])
def test_other_formats_can_only_be_read(openstack, command):
    for name in ("value", "json", "yaml", "shell" if command in SINGLE else "csv"):
        done = openstack(*words(command), "-f", name)
        text = done.stdout + done.stderr
        assert MARK in done.stdout, done.stderr
        if name == "json":
            # There, DEL is a character like others; terminals leave it out.
            text = text.replace("\x7f", "")
        if name == "yaml":
            # Long texts are folded within their quotes.
            text = text.replace("\n", " ")
        assert harm_in(text) == [], name


@pytest.mark.slow
def test_an_error_can_only_be_read(openstack):
    done = openstack("treeclaim", "candidates", f"resources={PAYLOAD}:1")
    assert done.returncode
    assert MARK in done.stderr
    assert harm_in(done.stderr) == []


@pytest.mark.slow
def test_lines_for_a_shell_execute_nothing(openstack, tmp_path):
    lines = openstack(*words("explain"), "-f", "shell").stdout
    assert "touch pwned" in lines
    script = 'eval "$1"; printf %s "$nearest"'
    done = subprocess.run(
        ["/bin/sh", "-c", script, "sh", lines],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert list(tmp_path.iterdir()) == []
    assert "$(touch pwned) `touch pwned`" in done.stdout
