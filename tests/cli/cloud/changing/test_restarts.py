# SPDX-License-Identifier: Apache-2.0
"""Commands of many calls survive that the service is killed and starts again, and report it."""

import signal
import subprocess
import threading

import httpx
import pytest

from tests.cli.services import open_client, run_successful_command
from tests.proxy import Proxy
from tests.servers import TREECLAIM, eventually, service_environment, serving, usual_environment
from treeclaim.client import Client, ClientError, Patience, follow
from treeclaim.client.session import BATCH

pytestmark = pytest.mark.slow

HOSTS = 3 * BATCH
TOPOLOGY = f"""
providers:
- {{name: "host-{{n}}", count: {HOSTS}, traits: [CUSTOM_GOLD], inventories: {{VCPU: 4, MEMORY_MB: 64}}}}
"""


@pytest.fixture
def server(tmp_path):
    """`treeclaim serve` on a database of its own."""
    folder = tmp_path / "service"
    folder.mkdir()
    with serving(service_environment(folder), folder) as running:
        yield running


@pytest.fixture
def proxy(server):
    """A proxy in front of the service that keeps the second write of providers back."""
    result = Proxy(httpx.URL(server.url).port)
    result.silent_at, result.silent_in = b"POST /treeclaim/providers ", 2
    yield result
    result.close()


def _killed_in_the_middle(server, proxy, environment, folder, *command):
    """Run a command, and kill the service and start it again while its second write is on its way."""
    output = folder / "said"
    with output.open("wb") as errors, Client(server.url, "admin") as client:
        process = subprocess.Popen(
            [*TREECLAIM, *command], env=environment, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            eventually(lambda: proxy.is_silent or process.poll() is not None, "the second write")
            assert len(client.providers()) == BATCH, output.read_text()
            server.stop(signal.SIGKILL)
            proxy.cut()
            proxy.speak_again()
            eventually(
                lambda: b"trying again" in output.read_bytes() or process.poll() is not None,
                "a word about it",
            )
            assert process.poll() is None, output.read_text()
            server.start()
            assert process.wait(timeout=120) == 0, output.read_text()
        finally:
            process.kill()
            process.wait()


def test_load_continues_after_a_restart(server, proxy, tmp_path):
    topology = tmp_path / "topology.yaml"
    topology.write_text(TOPOLOGY)
    environment = usual_environment(tmp_path, TREECLAIM_ENDPOINT=proxy.url(server.url))
    _killed_in_the_middle(server, proxy, environment, tmp_path, "load", str(topology))
    with open_client(environment) as client:
        assert len(client.providers()) == HOSTS
    assert f"{HOSTS} unchanged" in run_successful_command(
        environment, "load", "--dry-run", str(topology)
    )


def test_follow_continues_after_a_restart(server):
    messages, states = [], []
    complete, changed = threading.Event(), threading.Event()

    def watch():
        with Client(server.url, "admin", patience=Patience(tell=messages.append)) as client:
            for providers in follow(client):
                complete.set()
                states.append({row["name"] for row in providers.values()})
                if "after" in states[-1]:
                    changed.set()
                    return

    def create(name):
        with Client(server.url, "admin") as client:
            client.call("POST", "/resource_providers", json={"name": name})

    create("before")
    threading.Thread(target=watch, daemon=True).start()
    assert complete.wait(60)
    server.stop(signal.SIGKILL)
    eventually(lambda: messages, "a word about it")
    with pytest.raises(ClientError):
        create("nowhere")
    server.start()
    create("after")
    assert changed.wait(60)
    assert states[-1] == {"before", "after"}
    assert "trying again" in messages[0]
