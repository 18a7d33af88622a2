# SPDX-License-Identifier: Apache-2.0
"""`request import`: the requests of consumers come from Nova or from a file (page 100)."""

import json
import uuid
from functools import partial
from urllib.parse import parse_qs

import pytest

from tests.api.resources.extension.clouds import uuid_of
from tests.bodies import claim_of
from tests.cli.processes import call
from tests.cli.services import open_client, run_service_with_hosts, run_successful_command
from tests.compute import compute_with, flavor_of, with_cloud
from treeclaim.cli.consumers import requests
from treeclaim.client import Client
from treeclaim.client.session import split_batches

HOST = uuid_of("host")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    stock = {name: {"total": 100_000} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    entry = {"name": "host", "uuid": HOST, "inventories": stock}
    with run_service_with_hosts(tmp_path_factory.mktemp("service"), entry) as environment:
        yield environment


def server(number, *, image="image", known=True, specs=None):
    """A server in the form of the compute API from 2.69 on."""
    uuid_ = uuid_of(f"server {number}")
    if not known:
        return {"id": uuid_, "links": []}
    specs = {"hw:numa_nodes": "1"} if specs is None else specs
    flavor = flavor_of("m1", 2, 512, 10, ephemeral=5, swap=1024, extra_specs=specs)
    del flavor["OS-FLV-EXT-DATA:ephemeral"]
    return {"id": uuid_, "image": {"id": image} if image else "", "flavor": flavor}


def claim_for_servers(environment, *numbers):
    for number in numbers:
        body = claim_of({HOST: {"resources": {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 16}}})
        with open_client(environment) as client:
            client.call("PUT", f"/allocations/{uuid_of(f'server {number}')}", json=body)


def read_allocations(environment, number):
    path = f"/allocations/{uuid_of(f'server {number}')}"
    with open_client(environment) as client:
        return client.call("GET", path, extended=True)


@pytest.mark.slow
def test_import_stores_requests_of_nova_servers(environment, tmp_path):
    servers = [server(0), server(1, image=None), server(2), server(3, known=False)]
    servers += [server(4, specs={"resources:VCPU": "many"})]
    claim_for_servers(environment, 0, 1)
    with compute_with(servers, page_size=2) as (compute, url):
        variables = with_cloud(environment, tmp_path, url)
        dry = call(variables, "request", "import", "nova", "--dry-run")
        assert "3 requests would be stored" in dry.stdout
        assert read_allocations(environment, 0)["request"] is None
        result = call(variables, "request", "import", "nova")
        assert result.returncode == 1
        assert "2 requests stored" in result.stdout
        assert "1 are of consumers without allocations" in result.stdout
        assert "its cell does not answer" in result.stderr
        assert "the requests of 2 servers are not known" in result.stderr
        assert {version for version, _ in compute.asked} == {"compute 2.69"}
    (query,) = read_allocations(environment, 0)["request"]
    assert parse_qs(query)["resources"] == ["VCPU:2,MEMORY_MB:512,DISK_GB:16"]
    assert read_allocations(environment, 0)["request_valid"] is True
    # One that boots from a volume has no root disk here.
    (query,) = read_allocations(environment, 1)["request"]
    assert parse_qs(query)["resources"] == ["VCPU:2,MEMORY_MB:512,DISK_GB:6"]
    assert read_allocations(environment, 1)["request_valid"] is False


@pytest.mark.slow
def test_interrupted_import_keeps_stored_batches_and_resumes(environment, tmp_path, monkeypatch):
    numbers = range(10_100, 10_105)
    claim_for_servers(environment, *numbers)
    monkeypatch.setattr(requests, "split_batches", partial(split_batches, most=2))
    call_client = Client.call
    batches = []

    def interrupted(client, method, path, json=None, **options):
        if path == "/treeclaim/requests":
            batches.append(list(json["requests"]))
            if len(batches) == 2:
                raise KeyboardInterrupt
        return call_client(client, method, path, json, **options)

    with compute_with([server(number) for number in numbers]) as (_, url):
        variables = with_cloud(environment, tmp_path, url)
        with monkeypatch.context() as patch:
            patch.setattr(Client, "call", interrupted)
            result = call(variables, "request", "import", "nova")
        assert result.returncode == 130
        assert "Traceback" not in result.stderr
        are_kept = [bool(read_allocations(environment, number)["request"]) for number in numbers]
        assert are_kept == [True, True, False, False, False]
        assert "5 requests stored" in run_successful_command(
            variables, "request", "import", "nova"
        )
    for number in numbers:
        shown = read_allocations(environment, number)
        assert (shown["request_valid"], shown["consumer_generation"]) == (True, 1)


@pytest.mark.slow
def test_import_reads_one_consumer_per_line(environment, tmp_path):
    claim_for_servers(environment, 100)
    path = tmp_path / "requests"
    queries = ["resources=VCPU:2,MEMORY_MB:512,DISK_GB:16", "resources=VCPU:3"]
    lines = [
        {"consumer": uuid_of("server 100"), "request": queries},
        {"consumer": str(uuid.uuid4()), "request": queries},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    shown = run_successful_command(environment, "request", "import", str(path))
    assert "1 requests stored" in shown
    assert read_allocations(environment, 100)["request"] == queries
    path.write_text(json.dumps(lines[0] | {"request": None}))
    run_successful_command(environment, "request", "import", str(path))
    assert read_allocations(environment, 100)["request"] is None


@pytest.mark.parametrize(
    "line", ["no", "[]", '{"consumer": "x", "request": []}', '{"consumer": 1, "request": null}']
)
def test_invalid_line_is_named_and_nothing_is_stored(environment, tmp_path, line):
    path = tmp_path / "requests"
    good = json.dumps({"consumer": uuid_of("server 100"), "request": ["resources=VCPU:1"]})
    path.write_text(f"{good}\n{line}\n")
    result = call(environment, "request", "import", str(path))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert read_allocations(environment, 100).get("request") is None
