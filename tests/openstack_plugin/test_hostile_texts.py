# SPDX-License-Identifier: Apache-2.0
"""Commands of the plugin print nothing that does more than be read; all formats are tried by `tests/cli`."""

import subprocess
from functools import partial
from importlib.metadata import entry_points

import pytest

from tests.cli.hostile import CLASS, MARK, PAYLOAD, find_harm, hostile_service
from tests.compute import compute_with, with_cloud
from treeclaim.cli.command import CloudCommand
from treeclaim.cli.registry import list_commands

GROUP = "openstack.treeclaim.v1"


@pytest.fixture(scope="module")
def openstack(shell, tmp_path_factory):
    """The command, in a cloud with hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    with hostile_service(folder) as (environment, _), compute_with() as (_, url):
        endpoint = environment.pop("TREECLAIM_ENDPOINT")
        login = with_cloud(environment, folder, url, placement_endpoint_override=endpoint)
        yield partial(shell.run, "treeclaim", environment=login)


def test_each_cloud_command_is_an_openstack_command():
    targets = {
        entry_point.name.replace("_", " "): entry_point.value
        for entry_point in entry_points(group=GROUP)
    }
    assert targets == {
        f"treeclaim {name}": f"treeclaim.cli.{entry.target}"
        for name, entry in list_commands().items()
        if issubclass(entry.load(), CloudCommand)
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["tree"],
        ["candidates", f"resources=VCPU:1,{CLASS}:1"],
        ["explain", f"resources=VCPU:99,{CLASS}:1", "-f", "shell"],
        ["candidates", f"resources={PAYLOAD}:1"],
        ["load", f"nofile{PAYLOAD}"],
    ],
    ids=["tree", "candidates", "shell", "error of the service", "error of the command"],
)
def test_output_and_errors_can_only_be_read(openstack, arguments):
    result = openstack(*arguments)
    assert MARK in result.stdout + result.stderr
    assert find_harm(result.stdout + result.stderr) == []


@pytest.mark.slow
def test_shell_format_executes_no_injected_code(openstack, tmp_path):
    lines = openstack("explain", f"resources=VCPU:99,{CLASS}:1", "-f", "shell").stdout
    assert "touch pwned" in lines
    script = 'eval "$1"; printf %s "$nearest"'
    result = subprocess.run(
        ["/bin/sh", "-c", script, "sh", lines],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert list(tmp_path.iterdir()) == []
    assert "$(touch pwned) `touch pwned`" in result.stdout
