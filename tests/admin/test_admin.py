# SPDX-License-Identifier: Apache-2.0
"""The admin listener: liveness, readiness and metrics."""

import re
import socket
from contextlib import ExitStack

import httpx
import psutil
import pytest

from tests.bodies import claim_of
from tests.cli.processes import run
from tests.databases import new_server_of
from tests.ports import free_port
from tests.servers import (
    TREECLAIM,
    answers,
    eventually,
    running,
    service_environment,
    serving,
)
from tests.service import HEADERS, schema_on
from treeclaim import __version__

PROVIDER = "6f5a2c54-3c06-4a5b-a1b2-7e0ce0b8d601"
CONSUMER = "0a3c2d7e-91c5-4cbe-a8f3-5dfbc2c0a001"


@pytest.fixture
def environment(tmp_path):
    """The environment of a service with an admin listener on a free port."""
    return service_environment(tmp_path, OS_TREECLAIM__ADMIN_LISTEN=f"127.0.0.1:{free_port()}")


def status_of(admin, path):
    """Return the status of a page, or None without a response."""
    try:
        return admin.get(path).status_code
    except httpx.TransportError:
        return None


def value_of(admin, sample):
    """Return the value of the sample with these labels, or None."""
    for line in admin.get("/metrics").text.splitlines():
        if line.startswith(sample + " "):
            return float(line.rsplit(" ", 1)[1])
    return None


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_admin_listener_serves_live_ready_and_metrics(environment, tmp_path, workers):
    admin_url = f"http://{environment['OS_TREECLAIM__ADMIN_LISTEN']}"
    with (
        serving(environment, tmp_path, f"--workers={workers}") as server,
        httpx.Client(base_url=server.url, headers=HEADERS) as api,
        httpx.Client(base_url=admin_url) as admin,
    ):
        eventually(answers(admin_url + "/live"), "the admin listener answers")
        assert admin.get("/live").text == "alive\n"
        assert admin.get("/ready").text == "ready\n"
        path = f"/resource_providers/{PROVIDER}"
        api.post("/resource_providers", json={"name": "host", "uuid": PROVIDER})
        body = {
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 10, "reserved": 2, "allocation_ratio": 4.0}},
        }
        assert api.put(f"{path}/inventories", json=body).status_code == 200
        assert api.put(f"{path}/inventories", json=body).status_code == 409
        body = claim_of({PROVIDER: {"resources": {"VCPU": 3}}})
        assert api.put(f"/allocations/{CONSUMER}", json=body).status_code == 204
        for _ in range(5):
            assert api.get("/allocation_candidates?resources=VCPU:1").status_code == 200
        api.get("/made/up")
        api.get("/made/up/too")

        route = 'method="GET",route="/allocation_candidates"'
        assert value_of(admin, f'treeclaim_requests_total{{{route},status="200"}}') == 5
        assert value_of(admin, f"treeclaim_request_seconds_count{{{route}}}") == 5
        unknown = 'treeclaim_requests_total{method="-",route="-",status="404"}'
        assert value_of(admin, unknown) == 2
        assert value_of(admin, 'treeclaim_search_seconds_count{phase="feed"}') == 5
        for phase in ("relate", "anchors", "stage", "combine", "distinct", "write"):
            # Each worker searches at most once, and caches the answer.
            searches = value_of(admin, f'treeclaim_search_seconds_count{{phase="{phase}"}}')
            assert 1 <= searches <= workers
        for phase in ("wait", "locks", "statements", "commit", "hand_over"):
            assert value_of(admin, f'treeclaim_claim_seconds_count{{phase="{phase}"}}') == 1
        assert value_of(admin, "treeclaim_candidates_total") == 5
        conflict = 'code="placement.concurrent_update",route="/resource_providers/{uuid}/'
        assert value_of(admin, f'treeclaim_conflicts_total{{{conflict}inventories"}}') == 1
        text = admin.get("/metrics").text
        positions = re.findall(r"^treeclaim_feed_position\{.*\} (.+)$", text, re.MULTILINE)
        assert max(map(float, positions)) == value_of(admin, "treeclaim_feed_committed")
        assert re.search(r"^treeclaim_forest_providers\{.*\} 1.0$", text, re.MULTILINE)
        assert "treeclaim_resource_capacity" not in text
        # The first process, the listener, and the loader, which exists with several workers.
        require_process_metrics(admin, {1: 3, 2: 5}[workers])
        assert admin.get("/resource_providers").status_code == 404
        assert api.get("/metrics").status_code == 404


def require_process_metrics(admin, number):
    """Require metrics of the program and of this number of processes."""
    text = admin.get("/metrics").text
    assert re.search(
        rf'treeclaim_build_info{{python="3[^"]*",version="{re.escape(__version__)}"}} 1\.0', text
    )

    def find_residents():
        sizes = re.findall(r"process_resident_memory_bytes{.*} (\S+)", admin.get("/metrics").text)
        return sizes if len(sizes) == number else None

    residents = eventually(find_residents, "all processes are measured")
    assert all(10e6 < float(value) < 10e9 for value in residents)
    for name in ("process_cpu_seconds_total", "process_open_fds", "process_threads"):
        values = re.findall(rf'{name}{{program="treeclaim",worker="\d+"}} (\S+)', text)
        assert values
        assert all(float(value) > 0 for value in values)


@pytest.mark.slow
def test_idle_connections_hold_no_threads_and_block_nobody(environment, tmp_path):
    command = [*TREECLAIM, "admin"]
    url = f"http://{environment['OS_TREECLAIM__ADMIN_LISTEN']}"
    address = (httpx.URL(url).host, httpx.URL(url).port)
    schema_on(environment["OS_PLACEMENT_DATABASE__CONNECTION"])
    ready = answers(f"{url}/live")
    with (
        running(command, environment, tmp_path / "admin.log", ready) as server,
        ExitStack() as stack,
    ):
        process = psutil.Process(server.process.pid)
        before = process.num_threads()
        for _ in range(300):
            stack.enter_context(socket.create_connection(address, timeout=60))
        assert httpx.get(f"{url}/ready", timeout=60).text == "ready\n"
        assert httpx.get(f"{url}/live", timeout=60).text == "alive\n"
        assert process.num_threads() <= before + 2
        assert server.stop() == 0


@pytest.mark.slow
def test_database_loss_and_recovery_change_readiness(environment, tmp_path, postgresql):
    server = new_server_of("postgresql")
    admin_url = f"http://{environment['OS_TREECLAIM__ADMIN_LISTEN']}"
    try:
        with server.database(None) as url:
            server.kill()
            environment["OS_PLACEMENT_DATABASE__CONNECTION"] = url
            environment["OS_PLACEMENT_DATABASE__MAX_RETRIES"] = "-1"
            port = free_port()
            command = [*TREECLAIM, "serve", f"--port={port}", "--workers=1"]
            with (
                running(
                    command, environment, tmp_path / "log", answers(f"{admin_url}/live")
                ) as service,
                httpx.Client(base_url=admin_url, timeout=60) as admin,
            ):
                assert admin.get("/live").status_code == 200
                assert admin.get("/ready").status_code == 503
                server.start()
                eventually(lambda: status_of(admin, "/ready") == 200, "it becomes ready")
                assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
                server.kill()
                eventually(lambda: status_of(admin, "/ready") == 503, "the loss is noticed")
                # This page requires no token, so it must not show hosts, users or SQL.
                text = admin.get("/ready").text
                assert text.startswith("not ready: ")
                assert [word for word in ("127.0.0.1", "postgres", "SELECT") if word in text] == []
                assert admin.get("/live").status_code == 200
                server.start()
                eventually(lambda: status_of(admin, "/ready") == 200, "the return is noticed")
                assert service.stop() == 0
    finally:
        server.stop()


def test_standalone_admin_listener_reports_unusable_address(environment):
    refused = run(environment | {"OS_TREECLAIM__ADMIN_LISTEN": ""}, "admin")
    assert refused.returncode == 1
    assert "[treeclaim]/admin_listen is empty" in refused.stderr
    unusable = environment | {"OS_TREECLAIM__ADMIN_LISTEN": "192.0.2.1:1"}
    refused = run(unusable, "admin")
    assert refused.returncode == 1
    assert "cannot listen on 192.0.2.1:1" in refused.stderr
