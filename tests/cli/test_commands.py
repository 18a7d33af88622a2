# SPDX-License-Identifier: Apache-2.0
"""The commands as a person runs them: real processes, real ports."""

import os
import signal
import socket
import subprocess

import httpx
import pytest

from tests.cli.processes import COMMAND, run


@pytest.fixture
def environment(tmp_path):
    """The environment of a command, with a database of its own and no configuration files."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "OS_PLACEMENT_CONFIG_DIR": str(tmp_path),
        "OS_PLACEMENT_DATABASE__CONNECTION": f"sqlite:///{tmp_path / 'placement.db'}",
        "OS_API__AUTH_STRATEGY": "noauth2",
    }


def test_db_sync_makes_the_schema_and_is_harmless_to_repeat(environment):
    assert run(environment, "db", "version").stdout == "None\n"
    for _ in range(2):
        assert run(environment, "db", "sync").returncode == 0
    assert run(environment, "db", "version").stdout == "a082b8bb98d0\n"
    assert "0 rows" in run(environment, "db", "prune").stdout


def test_a_database_at_another_revision_is_refused_with_advice(environment):
    run(environment, "db", "sync")
    run(environment, "db", "stamp", "cafe00000000")
    refused = run(environment, "serve")
    assert refused.returncode == 1
    assert "cafe00000000" in refused.stderr
    assert "a082b8bb98d0" in refused.stderr


def test_db_check_says_by_its_exit_code_whether_a_database_can_be_taken_over(environment):
    assert run(environment, "db", "check").returncode == 2
    run(environment, "db", "sync")
    fine = run(environment, "db", "check")
    assert (fine.returncode, "can be used" in fine.stdout) == (0, True), fine.stdout
    unsafe = environment | {"OS_PLACEMENT_DATABASE__SQLITE_SYNCHRONOUS": "false"}
    assert run(unsafe, "db", "check").returncode == 1
    run(environment, "db", "stamp", "cafe00000000")
    refused = run(environment, "db", "check")
    assert refused.returncode == 2
    assert "cafe00000000" in refused.stdout
    assert "placement-manage db sync" in refused.stdout


def test_serve_without_a_schema_says_what_to_do(environment):
    refused = run(environment, "serve")
    assert refused.returncode == 1
    assert "treeclaim db sync" in refused.stderr


def test_a_missing_connection_is_named(environment):
    del environment["OS_PLACEMENT_DATABASE__CONNECTION"]
    refused = run(environment, "db", "sync")
    assert refused.returncode == 1
    assert "[placement_database]/connection" in refused.stderr


def test_a_wrong_value_is_refused_with_the_option(environment):
    environment["OS_API__AUTH_STRATEGY"] = "none"
    refused = run(environment, "db", "sync")
    assert refused.returncode == 1
    assert "auth_strategy" in refused.stderr


def test_a_port_in_use_is_named(environment):
    run(environment, "db", "sync")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = run(environment, "serve", "--port", port)
    assert refused.returncode == 1
    assert port in refused.stderr


def test_several_workers_serve_one_database(environment, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment["OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP"] = "true"
    with (tmp_path / "log").open("wb") as log:
        service = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port), "--workers", "2"],
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        transport = httpx.HTTPTransport(retries=10)
        headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, headers=headers, transport=transport) as client:
            # Each on a connection of its own, so that both workers answer.
            for number in range(20):
                body = {"name": f"provider {number}"}
                created = client.post(
                    "/resource_providers", json=body, headers={"connection": "close"}
                )
                assert created.status_code == 200
                seen = client.get("/resource_providers", headers={"connection": "close"})
                assert len(seen.json()["resource_providers"]) == number + 1
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=60) == 0
