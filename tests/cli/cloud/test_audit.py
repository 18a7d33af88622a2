# SPDX-License-Identifier: Apache-2.0
"""`treeclaim audit`: its output, repairs and exit status, and live consumers from Nova or a file."""

import io
import json
import uuid

import pytest

from tests.cli.processes import call
from tests.cli.services import (
    open_client,
    run_command,
    run_refused_command,
    run_service_with_hosts,
)
from tests.compute import compute_with, with_cloud

HOST = str(uuid.UUID(int=1))
SERVERS = [str(uuid.UUID(int=100 + number)) for number in range(5)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A service with one host and five servers on it."""
    entry = {"name": "cmp-1", "uuid": HOST, "inventories": {"VCPU": {"total": 64}}}
    with run_service_with_hosts(tmp_path_factory.mktemp("service"), entry) as variables:
        for server in SERVERS:
            claim(variables, server)
        yield variables


def claim(environment, consumer, kind=None):
    """Claim as Nova does, without a type, or with one."""
    candidate = {"allocations": {HOST: {"resources": {"VCPU": 1}}}}
    with open_client(environment) as client:
        client.claim(consumer, candidate, project_id="p", user_id="u", consumer_type=kind)


def run_audit(environment, *arguments, code):
    return run_command(environment, "audit", *arguments, code=code)


@pytest.mark.slow
def test_orphans_by_nova_are_found_and_released(environment, tmp_path, monkeypatch):
    lost = str(uuid.uuid4())
    claim(environment, lost)
    options = ["--living-from", "nova", "--older-than", "0", "--kind", "orphaned"]
    with compute_with(SERVERS) as (compute, url):
        cloud = with_cloud(environment, tmp_path, url)
        shown = run_audit(cloud, *options, code=1)
        assert f"consumer={lost}" in shown
        assert "orphaned: 1" in shown
        assert set(compute.asked) == {("compute 2.69", "True"), ("compute 2.69", None)}
        monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
        assert f"consumer={lost}" in run_audit(cloud, *options, "--repair", "orphaned", code=1)
        repair = [*options, "--repair", "orphaned"]
        monkeypatch.setattr("sys.stdin", io.StringIO("yes\nno\n"))
        assert f"consumer={lost}" in run_audit(cloud, *repair, code=1)
        text = run_refused_command(cloud, "audit", *repair, "--yes", code=2)
        assert "1 consumer would lose all allocations; the list has 5 live consumers" in text
        monkeypatch.setattr("sys.stdin", io.StringIO("yes\nyes\n"))
        mended = call(cloud, "audit", *repair)
        assert (mended.returncode, mended.stdout) == (0, "Nothing found.\n")
        assert mended.stderr.endswith("1 of 1 finding repaired\n")
    with open_client(environment) as client:
        assert client.get(f"/allocations/{lost}")["allocations"] == {}
        assert client.get(f"/allocations/{SERVERS[-1]}")["allocations"]


@pytest.mark.parametrize("form", ["lines", "json"])
def test_living_consumers_are_read_from_a_file(environment, tmp_path, form):
    path = tmp_path / "living"
    living = SERVERS[:-1]
    path.write_text("\n".join(living) if form == "lines" else json.dumps({"unknown": living}))
    options = ["--living-from", str(path), "--older-than", "0", "-f", "json"]
    orphaned = json.loads(run_audit(environment, *options, code=1))["findings"]["orphaned"]
    assert [item["consumer"] for item in orphaned["items"]] == SERVERS[-1:]


@pytest.mark.slow
def test_running_migrations_and_restorable_servers_are_not_orphans(environment, tmp_path):
    living, over, restorable = (str(uuid.uuid4()) for _ in range(3))
    consumers = (living, over, restorable)
    for consumer in consumers:
        claim(environment, consumer, "INSTANCE" if consumer == over else None)
    nova_lists = {
        "migrations": [(living, "finished"), (over, "confirmed")],
        "deleted": [restorable],
    }
    with compute_with(SERVERS, **nova_lists) as (_, url):
        cloud = with_cloud(environment, tmp_path, url)
        options = [
            "--living-from",
            "nova",
            "--older-than",
            "0",
            "-f",
            "json",
            "--kind",
            "orphaned",
        ]
        items = json.loads(run_audit(cloud, *options, code=1))["findings"]["orphaned"]["items"]
    assert [finding["consumer"] for finding in items] == [over]
    with open_client(environment) as client:
        for consumer in consumers:
            client.call("DELETE", f"/allocations/{consumer}")


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ({}, "no live consumer of type"),
        ({"servers": SERVERS[:1], "unknown": SERVERS[1:]}, "cell of Nova"),
    ],
)
def test_empty_or_partial_server_list_releases_nothing(environment, tmp_path, lists, message):
    with compute_with(**lists) as (_, url):
        cloud = with_cloud(environment, tmp_path, url)
        options = ["--living-from", "nova", "--older-than", "0", "--repair", "orphaned", "--yes"]
        assert message in run_refused_command(cloud, "audit", *options, code=2)
    with open_client(environment) as client:
        assert client.get(f"/allocations/{SERVERS[0]}")["allocations"]


def test_audit_failures_have_exit_status_2(environment, tmp_path):
    assert "OS_CLOUD" in run_refused_command(environment, "audit", "--living-from", "nova", code=2)
    assert run_refused_command(
        environment, "audit", "--living-from", str(tmp_path / "nothing"), code=2
    )
    for option in ("--repair", "--kind"):
        text = run_refused_command(environment, "audit", option, "orphaned", code=2)
        assert f"{option} orphaned needs --living-from" in text
    nowhere = environment | {"TREECLAIM_ENDPOINT": "http://127.0.0.1:1"}
    assert run_refused_command(nowhere, "audit", code=2)
    assert run_refused_command(environment, "audit", "--kind", "everything", code=2)
    with compute_with(SERVERS) as (_, url):
        broken = with_cloud(environment, tmp_path, f"{url}/elsewhere")
        text = run_refused_command(broken, "audit", "--living-from", "nova", code=2)
        assert "does not list its servers" in text
