# SPDX-License-Identifier: Apache-2.0
"""A worker that lacks a resource answers what it can, and recovers when the resource is back.

Nothing is restarted: at the end of each test the same process answers as at its beginning.
"""

import os
import resource
import socket
import subprocess
import uuid
from contextlib import ExitStack, contextmanager, suppress

import httpx
import psutil
import pytest
import sqlalchemy as sa

from tests.databases import new_server_of
from tests.faults.harness.disks import fill, small_disk
from tests.faults.harness.service import client_of, running
from tests.ports import free_port
from tests.servers import TREECLAIM, answers, eventually, service_environment

pytestmark = pytest.mark.slow

EXTENDED = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
REFUSED = {500, 503}


def works(client):
    """Return whether a write, a read from memory and a search get responses."""
    name = str(uuid.uuid4())
    host = {"name": name, "uuid": name, "inventories": {"VCPU": {"total": 4}}}
    answers = [
        client.post("/treeclaim/providers", json={"providers": [host]}, headers=EXTENDED),
        client.get(f"/resource_providers?name={name}"),
        client.get(f"/allocation_candidates?resources=VCPU:4&in_tree={name}"),
    ]
    return all(answer.is_success for answer in answers) and answers[2].json()[
        "provider_summaries"
    ].keys() == {name}


def count_many(client):
    """Make calls that are counted apart, each by operation and status."""
    provider = uuid.uuid4()
    for path in ("resource_providers", "resource_classes", "traits", "usages", "reshaper"):
        for method in ("GET", "PUT", "POST", "DELETE"):
            for ending in ("", f"/{provider}", f"/{provider}/inventories", f"/{provider}/traits"):
                assert client.request(method, f"/{path}{ending}").status_code < 500


@contextmanager
def one_worker(folder, database=None, **environment):
    """A service with one worker that works; it does so at the end too, and is the same one."""
    database = database or f"sqlite:///{folder / 'placement.db'}"
    with (
        running(database, folder, workers=1, **environment) as service,
        client_of(service.url) as client,
    ):
        assert works(client)
        (worker,) = service.workers()
        yield service, client, worker
        assert eventually(lambda: works_again(service))
        assert service.workers() == {worker}


def works_again(service):
    with suppress(httpx.TransportError), client_of(service.url) as client:
        return works(client)
    return False


def limit(process, kind, soft):
    """Set the limit of a resource of a process; return a function that restores it."""
    former = process.rlimit(kind)
    process.rlimit(kind, (soft, former[1]))
    return lambda: process.rlimit(kind, former)


def test_worker_serves_without_disk_space_for_metrics_at_start(mounts, tmp_path):
    with small_disk(tmp_path / "small", 65536) as folder:
        fill(folder)
        environment = {
            "PROMETHEUS_MULTIPROC_DIR": str(folder),
            "TMPDIR": str(folder),
            "OS_TREECLAIM__ADMIN_LISTEN": (admin := f"127.0.0.1:{free_port()}"),
        }
        with one_worker(tmp_path, **environment) as (service, client, _):
            count_many(client)
            assert "Metrics of this process are not shown" in service.log.read_text()
            assert httpx.get(f"http://{admin}/ready").text == "ready\n"
            text = httpx.get(f"http://{admin}/metrics").text
            assert 'treeclaim_workers{state="hidden"} 1.0' in text


def test_worker_serves_after_disk_space_for_metrics_runs_out(mounts, tmp_path):
    with (
        small_disk(tmp_path / "small", 1_000_000) as folder,
        one_worker(tmp_path, TMPDIR=str(folder)) as (_, client, _),
    ):
        filler = fill(folder)
        count_many(client)
        assert works(client)
        filler.unlink()


def test_worker_serves_without_new_threads(tmp_path):
    """There is no room for another stack."""
    with one_worker(tmp_path) as (_, client, worker):
        stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
        room = min(stack, 8 << 20) // 2 if stack > 0 else 4 << 20
        give_back = limit(worker, psutil.RLIMIT_AS, worker.memory_info().vms + room)
        for _ in range(20):
            assert works(client)
        give_back()


def test_worker_serves_without_new_file_descriptors(tmp_path):
    with one_worker(tmp_path) as (service, client, worker), ExitStack() as stack:
        give_back = limit(worker, psutil.RLIMIT_NOFILE, worker.num_fds())
        assert works(client), "who is connected is answered"
        other_clients = [stack.enter_context(client_of(service.url)) for _ in range(8)]
        for other in other_clients:
            with suppress(httpx.TransportError):
                assert other.get("/", timeout=0.2).status_code == 200
        give_back()


def test_worker_refuses_large_requests_without_memory_and_recovers(tmp_path):
    with one_worker(tmp_path) as (_, client, worker):
        give_back = limit(worker, psutil.RLIMIT_AS, worker.memory_info().vms + (16 << 20))
        names = [{"name": str(uuid.uuid4()) + "x" * 150} for _ in range(20_000)]
        for _ in range(3):
            with suppress(httpx.TransportError):
                answer = client.post("/treeclaim/providers", json={"providers": names})
                assert answer.status_code >= 400
            with suppress(httpx.TransportError):
                assert client.get("/").status_code in {200} | REFUSED
        give_back()


def test_worker_recovers_after_database_sessions_run_out(postgresql, tmp_path):
    server = new_server_of("postgresql")
    try:
        with (
            server.database(tmp_path) as database,
            one_worker(tmp_path, database) as (_, client, _),
            ExitStack() as stack,
        ):
            engine = sa.create_engine(database, poolclass=sa.NullPool)
            with suppress(sa.exc.OperationalError):
                while True:
                    stack.callback(engine.connect().close)
            assert client.get("/").status_code == 200
            assert client.get("/resource_providers").status_code == 200, (
                "by the session that it has"
            )
            stack.close()
    finally:
        server.stop()


def test_worker_serves_with_a_full_log_pipe(tmp_path):
    """The log pipe of a service is full after some hundred lines; it reports the lost lines when the pipe is read again."""
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [*TREECLAIM, "serve", f"--port={port}", "--workers=1"]
    environment = service_environment(tmp_path)
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            eventually(answers(url))
            for _ in range(600):
                # The loop of the connections itself logs these.
                with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                    client.sendall(b"GET /none HTTP/1.1\r\n\r\n")
                    assert client.recv(1 << 16).startswith(b"HTTP/1.1 400 ")
            with client_of(url) as client:
                for _ in range(1_500):
                    assert client.get("/").status_code == 200
                assert works(client)
                # A short message that found the last room reports the longer ones that were lost.
                log = [os.read(process.stdout.fileno(), 1 << 20)]

                def is_told():
                    assert works(client)
                    log.append(os.read(process.stdout.fileno(), 1 << 20))
                    return b"log lines were lost" in b"".join(log)

                assert eventually(is_told)
        finally:
            process.terminate()
            process.stdout.read()
    assert process.returncode == 0
