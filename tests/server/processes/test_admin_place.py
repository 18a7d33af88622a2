# SPDX-License-Identifier: Apache-2.0
"""The admin listener is a process like the others, and says how the others are."""

import signal
import socket
from contextlib import contextmanager, suppress

import httpx
import psutil
import pytest

from tests.ports import free_port
from tests.server.processes.service import ADMIN, WORKER, Service
from tests.servers import (
    TREECLAIM,
    answers,
    eventually,
    running,
    service_environment,
    serving,
)
from tests.service import HEADERS

pytestmark = pytest.mark.slow


@contextmanager
def service(folder, *options, **options_of_file):
    """Run the service for the duration of a block."""
    port = free_port()
    environment = service_environment(
        folder, **{"OS_TREECLAIM__ADMIN_LISTEN": f"127.0.0.1:{port}"} | options_of_file
    )
    with serving(environment, folder, *options) as server:
        running = Service(server, f"http://127.0.0.1:{port}")
        running.await_status("/ready", 200)
        yield running


def test_killed_admin_listener_is_replaced(tmp_path):
    with service(tmp_path) as running:
        former = running.await_process(ADMIN)
        former.kill()
        eventually(lambda: not former.is_running(), "it has ended")
        assert running.await_status("/live", 200) == "alive\n"
        assert running.await_process(ADMIN).pid != former.pid
        assert "The admin listener ended (signal SIGKILL)" in running.server.log.read_text()


def test_admin_listener_killed_at_start_is_replaced(tmp_path):
    port = free_port()
    environment = service_environment(tmp_path, OS_TREECLAIM__ADMIN_LISTEN=f"127.0.0.1:{port}")
    with starting(environment, tmp_path) as server:
        service = Service(server, f"http://127.0.0.1:{port}")
        former = service.await_process(ADMIN)
        former.kill()
        eventually(answers(server.url), "the service starts")
        assert service.await_status("/live", 200) == "alive\n"
        assert service.await_process(ADMIN).pid != former.pid


def test_taken_port_is_reported_once(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        environment = service_environment(tmp_path, OS_TREECLAIM__ADMIN_LISTEN=address)
        with serving(environment, tmp_path) as server:
            text = server.log.read_text()
    assert text.count(f"cannot listen on {address}") == 1, text


def test_reload_moves_admin_listener_to_new_address_and_database(tmp_path):
    """Address, database and log are those of the configuration that was read last."""
    port, other = free_port(), free_port()
    path = tmp_path / "placement.conf"

    def configure(port, database):
        path.write_text(
            f"[treeclaim]\nadmin_listen = 127.0.0.1:{port}\n[placement_database]\n"
            f"connection = sqlite:///{tmp_path}/{database}.db\nsync_on_startup = true\n"
            "[api]\nauth_strategy = noauth2\n"
        )

    configure(port, "first")
    environment = service_environment(tmp_path)
    for name in ("OS_TREECLAIM__ADMIN_LISTEN", "OS_PLACEMENT_DATABASE__CONNECTION"):
        del environment[name]
    with serving(environment, tmp_path, f"--config-file={path}") as server:
        first = Service(server, f"http://127.0.0.1:{port}")
        first.await_status("/ready", 200)
        former = first.await_process(ADMIN)
        httpx.post(f"{server.url}/resource_providers", json={"name": "h"}, headers=HEADERS)
        assert first.committed() == 2
        configure(other, "second")
        server.send(signal.SIGHUP)
        second = Service(server, f"http://127.0.0.1:{other}")
        second.await_status("/ready", 200)
        assert second.committed() == 1, "the other database has its standard names alone"
        eventually(lambda: first.ask("/live") is None, "the former address is left")
        eventually(lambda: not former.is_running(), "the former process ends")
        # The former address again, which is never free.
        former = second.await_process(ADMIN)
        server.send(signal.SIGHUP)
        eventually(lambda: not former.is_running(), "it is renewed")
        second.await_status("/ready", 200)


def test_stalled_workers_are_reported_by_live_and_ready(tmp_path):
    with service(tmp_path, "--workers=2") as running:
        both = 'treeclaim_workers{state="answering"} 2.0'
        eventually(lambda: both in running.ask("/metrics")[1], "both answer")
        some, other = running.processes(WORKER)
        some.suspend()
        silent = f"alive, but these worker processes have stalled: {some.pid}\n"
        eventually(lambda: running.ask("/live") == (200, silent), "one of two is told")
        assert running.ask("/ready") == (200, "ready\n")
        assert httpx.head(f"{running.admin_url}/ready").status_code == 200
        other.suspend()
        for path in ("/live", "/ready"):
            text = running.await_status(path, 503)
            assert str(some.pid) in text
            assert str(other.pid) in text
        assert 'treeclaim_workers{state="silent"} 2.0' in running.ask("/metrics")[1]
        some.resume()
        other.resume()
        assert running.await_status("/live", 200)
        assert eventually(lambda: running.ask("/live") == (200, "alive\n"), "both answer")
        assert running.ask("/ready") == (200, "ready\n")


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (psutil.Process.suspend, "the loader has stalled"),
        (psutil.Process.kill, "the loader has ended (signal SIGKILL)"),
    ],
)
def test_loader_lost_at_start_is_replaced(tmp_path, fault, problem):
    environment = service_environment(tmp_path)
    with starting(environment, tmp_path) as server:
        lost = eventually(lambda: loader_of(server), "a loader starts")
        fault(lost)
        eventually(answers(server.url), "another one serves")
        assert not lost.is_running()
        assert f"Another loader is started: {problem}" in server.log.read_text()


def is_another(loader, former):
    return loader is not None and loader.pid != former.pid


def test_loaders_killed_at_start_leave_their_admin_address_to_the_next(tmp_path):
    """The loaders wait for a database that does not exist, and answer probes."""
    port = free_port()
    environment = service_environment(
        tmp_path,
        database=f"postgresql://none@127.0.0.1:{free_port()}/none",
        OS_TREECLAIM__ADMIN_LISTEN=f"127.0.0.1:{port}",
        OS_PLACEMENT_DATABASE__MAX_RETRIES="-1",
    )
    with starting(environment, tmp_path) as server:
        service = Service(server, f"http://127.0.0.1:{port}")
        service.await_status("/live", 200)
        former = service.await_process(ADMIN)
        first = loader_of(server)
        first.kill()
        eventually(lambda: not former.is_running(), "its admin listener ends")
        second = eventually(lambda: loader_of(server), "a loader starts")
        assert second.pid != first.pid
        second.kill()
        eventually(lambda: is_another(loader_of(server), second), "a third loader starts")
        service.await_status("/live", 200)
        assert "cannot listen" not in server.log.read_text()


def test_loaders_killed_at_start_end_the_service(tmp_path):
    with starting(service_environment(tmp_path), tmp_path) as server:
        while server.process.poll() is None:
            if (loader := loader_of(server)) is not None:
                loader.kill()
        assert server.process.returncode == 1
        text = server.log.read_text()
        assert text.count("Another loader is started: the loader has ended (signal SIGKILL)") == 2


@contextmanager
def starting(environment, folder):
    """Start a service without waiting until it answers, for a block."""
    url = f"http://127.0.0.1:{free_port()}"
    command = [*TREECLAIM, "serve", f"--port={httpx.URL(url).port}"]
    with running(command, environment, folder / "log", lambda: True) as server:
        server.url = url
        yield server


def loader_of(server):
    """The loader that the first process has started; None while there is none.

    Before it runs its own program, the first process waits for it: nobody could notice that it is stopped.
    """
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(server.process.pid).children():
            if "treeclaim.server" in child.cmdline():
                return child
    return None
