# SPDX-License-Identifier: Apache-2.0
"""The admin listener is a separate process that reports on the other processes."""

import copy
import signal
import socket
from contextlib import suppress

import httpx
import psutil
import pytest

from tests.ports import free_port
from tests.servers import answers, eventually, service_environment, serving
from tests.service import HEADERS
from treeclaim.server.processes.children import ADMIN_NAME, WORKER_NAME

pytestmark = pytest.mark.slow


def with_admin(folder, **variables):
    """The environment of a service with an admin listener on a port of its own."""
    listen = f"127.0.0.1:{free_port()}"
    return service_environment(folder, **{"OS_TREECLAIM__ADMIN_LISTEN": listen} | variables)


def test_killed_admin_listener_is_replaced(tmp_path):
    with serving(with_admin(tmp_path), tmp_path) as running:
        running.await_status("/ready", 200)
        former = running.await_process(ADMIN_NAME)
        former.kill()
        eventually(lambda: not former.is_running(), "it has ended")
        assert running.await_status("/live", 200) == "alive\n"
        assert running.await_process(ADMIN_NAME).pid != former.pid
        assert "The admin listener ended (signal SIGKILL)" in running.log.read_text()


def test_admin_listener_killed_at_start_is_replaced(tmp_path):
    with serving(with_admin(tmp_path), tmp_path, is_awaited=False) as service:
        former = service.await_process(ADMIN_NAME)
        former.kill()
        eventually(answers(service.url), "the service starts")
        assert service.await_status("/live", 200) == "alive\n"
        assert service.await_process(ADMIN_NAME).pid != former.pid


def test_taken_port_is_reported_once(tmp_path):
    with socket.socket() as occupant:
        occupant.bind(("127.0.0.1", 0))
        occupant.listen()
        address = f"127.0.0.1:{occupant.getsockname()[1]}"
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
        first, second = server, copy.copy(server)
        first.admin_url, second.admin_url = (f"http://127.0.0.1:{at}" for at in (port, other))
        first.await_status("/ready", 200)
        former = first.await_process(ADMIN_NAME)
        httpx.post(f"{server.url}/resource_providers", json={"name": "h"}, headers=HEADERS)
        assert first.metric("treeclaim_feed_committed") == 2
        configure(other, "second")
        server.send(signal.SIGHUP)
        second.await_status("/ready", 200)
        assert second.metric("treeclaim_feed_committed") == 1, (
            "the other database has its standard names alone"
        )
        eventually(lambda: first.ask("/live") is None, "the former address is left")
        eventually(lambda: not former.is_running(), "the former process ends")
        # The former address again, which is never free.
        former = second.await_process(ADMIN_NAME)
        server.send(signal.SIGHUP)
        eventually(lambda: not former.is_running(), "it is renewed")
        second.await_status("/ready", 200)


def test_stalled_workers_are_reported_by_live_and_ready(tmp_path):
    with serving(with_admin(tmp_path), tmp_path, "--workers=2") as running:
        both = 'treeclaim_workers{state="answering"} 2.0'
        eventually(lambda: both in running.ask("/metrics")[1], "both answer")
        first, second = running.processes(WORKER_NAME)
        first.suspend()
        silent = f"alive, but these worker processes have stalled: {first.pid}\n"
        eventually(lambda: running.ask("/live") == (200, silent), "one of two is told")
        assert running.ask("/ready") == (200, "ready\n")
        assert httpx.head(f"{running.admin_url}/ready").status_code == 200
        second.suspend()
        for path in ("/live", "/ready"):
            text = running.await_status(path, 503)
            assert str(first.pid) in text
            assert str(second.pid) in text
        assert 'treeclaim_workers{state="silent"} 2.0' in running.ask("/metrics")[1]
        first.resume()
        second.resume()
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
    with serving(environment, tmp_path, is_awaited=False) as server:
        lost = eventually(lambda: loader_of(server), "a loader starts")
        fault(lost)
        eventually(answers(server.url), "another one serves")
        assert not lost.is_running()
        assert f"Another loader is started: {problem}" in server.log.read_text()


def is_another(loader, former):
    return loader is not None and loader.pid != former.pid


def test_loaders_killed_at_start_leave_their_admin_address_to_the_next(tmp_path):
    """The loaders wait for a database that does not exist, and answer probes."""
    environment = with_admin(
        tmp_path,
        database=f"postgresql://none@127.0.0.1:{free_port()}/none",
        OS_PLACEMENT_DATABASE__MAX_RETRIES="-1",
    )
    with serving(environment, tmp_path, is_awaited=False) as service:
        service.await_status("/live", 200)
        former = service.await_process(ADMIN_NAME)
        first = loader_of(service)
        first.kill()
        eventually(lambda: not former.is_running(), "its admin listener ends")
        second = eventually(lambda: loader_of(service), "a loader starts")
        assert second.pid != first.pid
        second.kill()
        eventually(lambda: is_another(loader_of(service), second), "a third loader starts")
        service.await_status("/live", 200)
        assert "cannot listen" not in service.log.read_text()


def test_loaders_killed_at_start_end_the_service(tmp_path):
    with serving(service_environment(tmp_path), tmp_path, is_awaited=False) as server:
        while server.process.poll() is None:
            if (loader := loader_of(server)) is not None:
                loader.kill()
        assert server.process.returncode == 1
        text = server.log.read_text()
        assert text.count("Another loader is started: the loader has ended (signal SIGKILL)") == 2


def loader_of(server):
    """The loader that the first process has started; None while there is none.

    Before it runs its own program, the first process waits for it: no test could notice that it is stopped.
    """
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(server.process.pid).children():
            if "treeclaim.server" in child.cmdline():
                return child
    return None
