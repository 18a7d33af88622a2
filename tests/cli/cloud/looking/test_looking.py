# SPDX-License-Identifier: Apache-2.0
"""`tree`, `show`, `usage`, `edit`, `explain` and `candidates`: their output, with few requests."""

import re
import stat
import sys
import uuid

import pytest

from tests.cli.processes import call, run
from tests.cli.services import run_refused_command, run_successful_command
from treeclaim.client.loading import apply_topology
from treeclaim.client.topology.file import parse_topology


@pytest.mark.parametrize(
    "arguments",
    [
        ("candidates", "resources=VCPU:1,MEMORY_MB:512", "resources_G=VGPU:1"),
        pytest.param(("tree", "host-1", "--inventories"), marks=pytest.mark.slow),
        pytest.param(("explain", "resources=VGPU:6"), marks=pytest.mark.slow),
        pytest.param(("provider", "show", "host-1"), marks=pytest.mark.slow),
    ],
    ids=lambda arguments: arguments[0],
)
def test_piped_output_is_complete_and_plain(environment, arguments):
    narrow = environment | {"COLUMNS": "40", "TERM": "xterm-256color", "FORCE_COLOR": "1"}
    shown = run(narrow, *arguments).stdout
    assert "\x1b[" not in shown
    assert shown == run(environment, *arguments).stdout
    assert "…" not in shown


def editor(folder, *steps):
    """Return the environment with an editor that does a step each time it is called.

    A step is a program for sed, or a shell command if it begins with `!`.
    """
    script = folder / "editor"
    counter = folder / "calls"
    lines = ["#!/bin/sh", f"echo x >> {counter}", f"case $(wc -l < {counter}) in"]
    for number, step in enumerate(steps, 1):
        command = step[1:] if step.startswith("!") else f"sed -i -e '{step}' \"$1\""
        lines.append(f' {number}) cp "$1" {folder}/seen{number}; {command} ;;')
    lines += ["esac"]
    script.write_text("\n".join(lines) + "\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"EDITOR": str(script)}


@pytest.fixture
def provider(client):
    name = f"own-{uuid.uuid4()}"
    text = f"providers: [{{name: {name}, inventories: {{VCPU: 8}}, traits: [CUSTOM_A]}}]"
    apply_topology(client, parse_topology(text, "text"))
    return client.providers(name=name)[0]


def read_traits(client, provider):
    return set(client.get(f"/resource_providers/{provider['uuid']}/traits")["traits"])


def read_totals(client, provider):
    inventories = client.get(f"/resource_providers/{provider['uuid']}/inventories")["inventories"]
    return {name: fields["total"] for name, fields in inventories.items()}


def test_edit_writes_the_changes(environment, client, provider, tmp_path):
    steps = editor(tmp_path, "s/total: 8/total: 9/; s/CUSTOM_A/CUSTOM_B/")
    shown = run_successful_command(environment | steps, "edit", provider["name"])
    assert "inventories.VCPU.total: 8 → 9" in shown
    assert (read_totals(client, provider), read_traits(client, provider)) == (
        {"VCPU": 9},
        {"CUSTOM_B"},
    )


def test_unchanged_or_emptied_edit_writes_nothing(environment, client, provider, tmp_path):
    assert "Nothing" in run_successful_command(
        environment | editor(tmp_path, "s/x/x/"), "edit", provider["name"]
    )
    (tmp_path / "calls").unlink()
    given_up = call(environment | editor(tmp_path, '!: > "$1"'), "edit", provider["name"])
    assert (given_up.returncode, "Cancelled" in given_up.stdout) == (1, True)
    assert read_totals(client, provider) == {"VCPU": 8}


def test_invalid_edit_reopens_with_the_error(environment, client, provider, tmp_path):
    steps = editor(tmp_path, "s/total: 8/total: 0/", "s/total: 0/total: 7/")
    run_successful_command(environment | steps, "edit", provider["name"])
    reopened = (tmp_path / "seen2").read_text()
    (line,) = re.findall(r"# ! line (\d+): .*total: it must be", reopened)
    assert "total: 0" in reopened.splitlines()[int(line) - 1]
    assert read_totals(client, provider) == {"VCPU": 7}


def test_edit_ends_with_an_editor_that_always_writes_another_mistake(
    environment, client, provider, tmp_path
):
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\necho "# $$" >>"$1"; echo "wrong$$: 1" >>"$1"\n')
    script.chmod(0o755)
    message = run_refused_command(environment | {"EDITOR": str(script)}, "edit", provider["name"])
    assert "nothing was changed" in message
    assert read_totals(client, provider) == {"VCPU": 8}


@pytest.mark.slow
def test_concurrent_change_reopens_the_edit_and_is_shown(environment, client, provider, tmp_path):
    foreign_file = tmp_path / "other.yaml"
    foreign_file.write_text(f"providers: [{{name: {provider['name']}, traits: [CUSTOM_OTHER]}}]")
    meanwhile = f"!sed -i -e 's/total: 8/total: 9/' \"$1\"; {sys.executable} -m treeclaim load {foreign_file}"
    steps = editor(tmp_path, meanwhile, "s/- CUSTOM_A/- CUSTOM_A\\n  - CUSTOM_OTHER/")
    run_successful_command(environment | steps, "edit", provider["name"])
    reopened = (tmp_path / "seen2").read_text()
    assert "Another client changed" in reopened
    assert "+ trait CUSTOM_OTHER" in reopened
    assert "total: 9" in reopened
    assert read_totals(client, provider) == {"VCPU": 9}
    assert read_traits(client, provider) == {"CUSTOM_A", "CUSTOM_OTHER"}
