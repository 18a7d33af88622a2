# SPDX-License-Identifier: Apache-2.0
"""Commands that deployment tools call (contract page 05, section 4)."""

import sqlite3

import pytest

from tests.cli.processes import call, call_program
from tests.servers import command_environment
from treeclaim.cli import placement_names

NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def environment(tmp_path):
    """The environment of a command, with a synced database of its own."""
    result = command_environment(tmp_path)
    call(result, "db", "sync")
    return result


@pytest.fixture
def old_rows(environment, tmp_path):
    """Rows from before providers had roots and consumers had records."""
    with sqlite3.connect(tmp_path / "placement.db") as database:
        database.executemany(
            "INSERT INTO resource_providers (uuid, name, generation) VALUES (?, ?, 0)",
            [(f"provider-{number}", f"name-{number}") for number in range(60)],
        )
        database.executemany(
            "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used)"
            " VALUES (1, ?, ?, 1)",
            [("first", 0), ("first", 1), ("second", 0)],
        )
    return lambda sql: sqlite3.connect(tmp_path / "placement.db").execute(sql).fetchall()


@pytest.mark.slow
def test_data_migrations_run_in_batches_until_nothing_is_left(environment, old_rows):
    result = call(environment, "db", "online_data_migrations")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[:4] == [
        "Running batches of 50 until complete",
        "50 rows matched query set_root_provider_ids, 50 migrated",
        "10 rows matched query set_root_provider_ids, 10 migrated",
        "2 rows matched query create_incomplete_consumers, 2 migrated",
    ]
    assert "| create_incomplete_consumers |      2      |     2     |" in lines
    assert old_rows("SELECT count(*) FROM resource_providers WHERE root_provider_id = id") == [
        (60,)
    ]
    assert old_rows(
        "SELECT c.uuid, p.external_id, u.external_id, c.generation FROM consumers c"
        " JOIN projects p ON p.id = c.project_id JOIN users u ON u.id = c.user_id ORDER BY c.uuid"
    ) == [("first", NOBODY, NOBODY, 0), ("second", NOBODY, NOBODY, 0)]


def test_max_count_stops_early_with_exit_status_1(environment, old_rows):
    result = call(environment, "db", "online_data_migrations", "--max-count", "61")
    assert result.returncode == 1
    assert "1 rows matched query create_incomplete_consumers, 1 migrated" in result.stdout
    assert call(environment, "db", "online_data_migrations", "--max-count", "61").returncode == 1
    assert call(environment, "db", "online_data_migrations", "--max-count", "61").returncode == 0


@pytest.mark.parametrize("count", ["0", "-1", "x"])
def test_max_count_must_be_positive(environment, count):
    refused = call(environment, "db", "online_data_migrations", f"--max-count={count}")
    assert refused.returncode == 127
    assert "Must supply a positive value for max_count" in refused.stdout


def test_upgrade_check_exit_code_shows_missing_migrations(environment, old_rows, tmp_path):
    failed = call(environment, "upgrade", "check")
    assert failed.returncode == 2
    assert "Check: Missing Root Provider IDs" in failed.stdout
    assert "There are 2 incomplete consumers" in failed.stdout
    with sqlite3.connect(tmp_path / "placement.db") as database:
        database.execute("UPDATE resource_providers SET root_provider_id = id")
    assert call(environment, "upgrade", "check").returncode == 1
    call(environment, "db", "online_data_migrations")
    assert call(environment, "upgrade", "check").returncode == 0


def test_upgrade_check_fails_on_a_policy_file_in_json(environment, tmp_path):
    (tmp_path / "policy.json").write_text("{}")
    environment["OS_OSLO_POLICY__POLICY_FILE"] = str(tmp_path / "policy.json")
    assert call(environment, "upgrade", "check").returncode == 2


def test_upgrade_check_without_a_schema_is_an_unexpected_error(environment, tmp_path):
    environment["OS_PLACEMENT_DATABASE__CONNECTION"] = f"sqlite:///{tmp_path / 'empty.db'}"
    assert call(environment, "upgrade", "check").returncode == 255


@pytest.mark.slow
def test_placement_programs_accept_options_before_the_command(environment, old_rows, tmp_path):
    del environment["OS_PLACEMENT_DATABASE__CONNECTION"]
    file = tmp_path / "other.conf"
    file.write_text(f"[placement_database]\nconnection = sqlite:///{tmp_path}/placement.db\n")
    options = ["--config-file", str(file), "--debug", "--log-file", str(tmp_path / "log")]
    manage, status = placement_names.manage, placement_names.status
    version = call_program(manage, environment, *options, "db", "version")
    assert (version.returncode, version.stdout) == (0, "a082b8bb98d0\n")
    assert call_program(status, environment, *options, "upgrade", "check").returncode == 2
    migration = ["db", "online_data_migrations", "--max-count=0"]
    assert call_program(manage, environment, *options, *migration).returncode == 127


def test_placement_manage_refuses_unknown_categories():
    with pytest.raises(SystemExit) as refused:
        placement_names.manage(["cell", "create"])
    assert refused.value.code == 2
