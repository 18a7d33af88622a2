# SPDX-License-Identifier: Apache-2.0
"""No command of the plugin prints anything that does more than be read, in any format."""

import subprocess
from functools import partial
from importlib.metadata import entry_points

import pytest

from tests.cli.hostile import CLASS, MARK, MIX, PAYLOAD, PROVIDER, harm_in, hostile_service
from tests.compute import compute_with, with_cloud

GROUP = "openstack.treeclaim.v1"
PLACEMENT = {
    "audit": [],
    "candidates": [f"resources=VCPU:1,{CLASS}:1"],
    "explain": [f"resources=VCPU:99,{CLASS}:1"],
    "fit": ["resources=VCPU:1", "--domains", "tree"],
    "place": ["resources=VCPU:1", "--dry-run"],
    "tree": [PROVIDER],
}
HOLDS = {
    "defragment": ["treeclaim", "defragment", "--mix", f"nothing{PAYLOAD}"],
    "drain": ["treeclaim", "drain", f"nobody{PAYLOAD}"],
    "make room": ["treeclaim", "make", "room", f"resources=VCPU:1&required={PAYLOAD}"],
    "survival": ["treeclaim", "survival", "--all"],
    "hold create": ["treeclaim", "hold", "create", "resources=VCPU:1", "--dry-run"],
    "hold list": ["treeclaim", "hold", "list"],
}
CONDITIONS = {
    "condition list": ["treeclaim", "condition", "list"],
    "condition set": ["treeclaim", "condition", "set", f"nobody{PAYLOAD}", "A"],
    "condition unset": ["treeclaim", "condition", "unset", f"nobody{PAYLOAD}", "A"],
}
MIXES = {
    "mix delete": ["treeclaim", "mix", "delete", f"no{PAYLOAD}"],
    "mix learn": ["treeclaim", "mix", "learn", "learnt", "--since", PAYLOAD],
    "mix list": ["treeclaim", "mix", "list"],
    "mix set": ["treeclaim", "mix", "set", "day", f"nofile{PAYLOAD}"],
    "mix show": ["treeclaim", "mix", "show", MIX],
}
CASES = {name: ["placement", name, *given] for name, given in PLACEMENT.items()}
CASES |= CONDITIONS | HOLDS | MIXES
"""Arguments of each command."""

REFUSED = (
    "condition set",
    "condition unset",
    "defragment",
    "drain",
    "make room",
    "mix delete",
    "mix learn",
    "mix set",
)
"""Commands that have no names to show, and fail here with a hostile word."""

SINGLE = ("explain",)
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


def test_each_command_is_tried():
    names = {each.name.partition("_")[2].replace("_", " ") for each in entry_points(group=GROUP)}
    assert names == CASES.keys()


@pytest.mark.parametrize("command", CASES)
def test_a_table_can_only_be_read(openstack, command):
    done = openstack(*CASES[command])
    assert MARK in (done.stderr if command in REFUSED else done.stdout), done.stderr
    assert harm_in(done.stdout + done.stderr) == []


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in CASES if command not in REFUSED])
def test_other_formats_can_only_be_read(openstack, command):
    for name in ("value", "json", "yaml", "shell" if command in SINGLE else "csv"):
        done = openstack(*CASES[command], "-f", name)
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
    done = openstack("placement", "candidates", f"resources={PAYLOAD}:1")
    assert done.returncode
    assert MARK in done.stderr
    assert harm_in(done.stderr) == []


@pytest.mark.slow
def test_lines_for_a_shell_execute_nothing(openstack, tmp_path):
    lines = openstack(*CASES["explain"], "-f", "shell").stdout
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
