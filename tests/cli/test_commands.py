# SPDX-License-Identifier: Apache-2.0
"""The output and effects of an operator's commands, and the service that they start."""

import re
import socket
import sqlite3
import subprocess
import sys

import pytest

from tests.cli.processes import call, run
from tests.ports import free_port
from tests.servers import command_environment, usual_environment
from treeclaim.cli.registry import list_commands


@pytest.fixture
def environment(tmp_path):
    """The environment of a command, with a database of its own and no configuration files."""
    return command_environment(tmp_path)


def set_revision(folder, revision):
    """Write a revision as another release of Placement would."""
    with sqlite3.connect(folder / "placement.db") as database:
        database.execute("UPDATE alembic_version SET version_num = ?", [revision])


def test_db_sync_creates_the_schema_and_is_idempotent(environment):
    assert call(environment, "db", "version").stdout == "None\n"
    for message in ("Made ", "none was made"):
        synced = call(environment, "db", "sync")
        assert (synced.returncode, message in synced.stdout) == (0, True), synced.stdout
    assert call(environment, "db", "version").stdout == "a082b8bb98d0\n"
    assert "0 rows" in call(environment, "db", "prune").stdout


@pytest.mark.slow
def test_database_at_unknown_revision_is_refused_with_advice(environment, tmp_path):
    call(environment, "db", "sync")
    set_revision(tmp_path, "cafe00000000")
    refused = run(environment, "serve", f"--port={free_port()}")
    assert refused.returncode == 1
    assert "cafe00000000" in refused.stderr
    assert "release that has revision a082b8bb98d0" in refused.stderr


@pytest.mark.slow
def test_db_check_exit_code_shows_whether_takeover_is_possible(environment, tmp_path):
    assert call(environment, "db", "check").returncode == 2
    call(environment, "db", "sync")
    fine = call(environment, "db", "check")
    assert (fine.returncode, "can be used" in fine.stdout) == (0, True), fine.stdout
    unsafe = environment | {"OS_PLACEMENT_DATABASE__SQLITE_SYNCHRONOUS": "false"}
    assert call(unsafe, "db", "check").returncode == 1
    set_revision(tmp_path, "cafe00000000")
    refused = call(environment, "db", "check")
    assert refused.returncode == 2
    assert "cafe00000000" in refused.stdout
    assert "placement-manage db sync" in refused.stdout


def test_a_missing_connection_is_named(environment):
    del environment["OS_PLACEMENT_DATABASE__CONNECTION"]
    refused = call(environment, "db", "sync")
    assert refused.returncode == 1
    assert "[placement_database]/connection" in refused.stderr
    assert "OS_PLACEMENT_DATABASE__CONNECTION" in refused.stderr


@pytest.mark.slow
def test_a_port_in_use_is_named(environment):
    call(environment, "db", "sync")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        refused = run(environment, "serve", "--port", port)
    assert refused.returncode == 1
    assert port in refused.stderr


def test_the_help_names_each_command_with_its_line(tmp_path):
    shown = call(usual_environment(tmp_path), "--help").stdout
    for name, command in list_commands().items():
        group, _, verb = name.rpartition(" ")
        page = call(usual_environment(tmp_path), group, "--help").stdout if group else shown
        assert re.search(rf"^    {verb}\b", page, re.MULTILINE), name
        assert " ".join(command.help.split()[:3]) in " ".join(page.split())


def test_help_imports_no_slow_library():
    """Each of these takes longer than the rest of a help."""
    script = (
        "import sys; from treeclaim.cli.registry import COMMANDS\n"
        "for name, entry in COMMANDS.items(): entry.load()().get_parser(name).format_help()\n"
        "slow = {'keystoneauth1', 'numpy', 'oslo_config', 'pydantic', 'requests', 'sqlalchemy'}\n"
        "print(sorted(slow & sys.modules.keys()))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
