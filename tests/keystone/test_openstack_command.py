# SPDX-License-Identifier: Apache-2.0
"""The `openstack` command with its placement subcommands, against a service behind Keystone."""

import json
import subprocess
import sys
import uuid
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import pytest
import yaml

from tests.environments import environment_of
from tests.openstack_shell import Shell
from tests.servers import usual_environment

pytestmark = pytest.mark.slow

_LIST_SUBCOMMANDS = """\
from importlib.metadata import entry_points
from pathlib import Path
for entry in entry_points(group="openstack.placement.v1"):
    print(entry.name.replace("_", " "))
"""


def _programs():
    return environment_of("clients", "python-openstackclient", "osc-placement") / "bin"


@pytest.fixture(scope="module")
def environment(keystone, service, tmp_path_factory):
    """The environment of an administrator."""
    return usual_environment(tmp_path_factory.mktemp("openstack"), **keystone.login())


@pytest.fixture(scope="module")
def subcommands():
    command = [_programs() / "python", "-c", _LIST_SUBCOMMANDS]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def matches(shown, expected):
    """Return whether all expected members are shown, and in lists nothing else."""
    if isinstance(expected, dict):
        return all(matches(shown.get(name), value) for name, value in expected.items())
    if isinstance(expected, list):
        return len(shown) == len(expected) and includes(shown, expected)
    return shown == expected


def includes(shown, expected):
    return all(any(matches(row, wanted) for row in shown) for wanted in expected)


def filled(value, names):
    """Return a value with names in braces replaced."""
    if isinstance(value, dict):
        return {filled(name, names): filled(inner, names) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(inner, names) for inner in value]
    return value.format_map(names) if isinstance(value, str) else value


def test_every_placement_subcommand_works(environment, subcommands):
    names = {
        name: str(uuid.uuid4()) for name in ("host", "disk", "rack", "consumer", "project", "user")
    }
    used = set()
    with closing(Shell(_programs() / "python", environment, "openstack.placement.v1")) as shell:
        for entry in yaml.safe_load(Path(__file__).with_name("osc_placement.yaml").read_text()):
            step = filled(entry if isinstance(entry, dict) else {"run": entry}, names)
            line = step["run"]
            used.add(max((each for each in subcommands if line.startswith(each)), key=len))
            shows_something = step.keys() & {"shows", "includes", "remembers"}
            result = shell.run(
                f"--os-placement-api-version={step.get('version', 1.39)}",
                *line.split(),
                *(["--format=json"] if shows_something else []),
            )
            assert result.returncode == int("refused" in step), (line, result.stderr)
            assert step.get("refused", "") in result.stderr
            if shows_something:
                shown = json.loads(result.stdout)
                assert matches(shown, step.get("shows", {})), (line, shown)
                assert includes(shown, step.get("includes", [])), (line, shown)
                if "remembers" in step:
                    names[step["remembers"]] = shown[step["remembers"]]
    assert used == set(subcommands)


def test_plugin_commands_coexist_and_share_the_login(environment, subcommands):
    names = [
        entry.name.replace("_", " ") for entry in entry_points(group="openstack.treeclaim.v1")
    ]
    theirs = tuple(subcommands)
    assert names
    # A command hides another one that begins with the same words.
    assert not [name for name in names if name.startswith(theirs)]
    assert not [name for name in theirs if name.startswith(tuple(names))]
    theirs_and_ours = (
        (_programs() / "openstack", "resource", "provider", "create", "plugin-host"),
        (sys.executable, "-m", "openstackclient.shell", "treeclaim", "tree", "--format=json"),
    )
    for command in theirs_and_ours:
        listed = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=120
        )
    assert "plugin-host" in {root["name"] for root in json.loads(listed.stdout)}
