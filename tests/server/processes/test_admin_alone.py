# SPDX-License-Identifier: Apache-2.0
"""`treeclaim admin` by itself is renewed by SIGHUP, with all that it has."""

import signal
import subprocess
import threading
import time
from contextlib import suppress

import httpx
import psutil
import pytest

from tests.ports import free_port
from tests.servers import TREECLAIM, eventually, usual_environment
from tests.service import schema_on

pytestmark = pytest.mark.slow


class Alone:
    """A running `treeclaim admin`, and its configuration file."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.configure("first")
        environment = usual_environment(folder, OS_PLACEMENT_CONFIG_DIR=str(folder))
        del environment["OS_TREECLAIM__ADMIN_LISTEN"]
        self.process = subprocess.Popen(
            [*TREECLAIM, "admin"], env=environment, stderr=subprocess.DEVNULL
        )
        self.url = f"http://127.0.0.1:{self.port}"

    def configure(self, name, lines="", flavors='{"requests": {"one": "resources=VCPU:1"}}'):
        """Let log, database and metrics be those of a name."""
        (self.folder / "flavors.json").write_text(flavors)
        (self.folder / "placement.conf").write_text(
            f"[DEFAULT]\nlog_file = {self.folder}/{name}.log\n[api]\nauth_strategy = noauth2\n"
            f"[placement_database]\nconnection = sqlite:///{self.folder}/{name}.db\n"
            f"[treeclaim]\nadmin_listen = 127.0.0.1:{self.port}\n"
            f"metrics_of_resources = {'none' if name == 'first' else 'cloud'}\n"
            f"metrics_of_flavors = {self.folder}/flavors.json\n{lines}\n"
        )

    def ask(self, path):
        """Status and text of a page; None where nobody answers."""
        with suppress(httpx.TransportError):
            answer = httpx.get(self.url + path, timeout=30)
            return answer.status_code, answer.text
        return None

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def alone(tmp_path):
    running = Alone(tmp_path)
    yield running
    if running.process.poll() is None:
        running.stop()


def test_a_reload_renews_log_database_and_metrics_in_the_same_process(alone):
    eventually(lambda: (answer := alone.ask("/ready")) and answer[0] == 503, "there is no schema")
    assert "treeclaim_fits" not in alone.ask("/metrics")[1]
    schema_on(f"sqlite:///{alone.folder}/second.db")
    alone.configure("second")
    begun = psutil.Process(alone.process.pid).create_time()
    failures, is_over = [], threading.Event()

    def go_on():
        while not is_over.is_set():
            if alone.ask("/live") is None:
                failures.append(time.monotonic())

    visitor = threading.Thread(target=go_on)
    visitor.start()
    alone.process.send_signal(signal.SIGHUP)
    eventually(lambda: alone.ask("/ready")[0] == 200, "it has the other database")
    eventually(lambda: "treeclaim_fits{" in alone.ask("/metrics")[1], "flavors are counted")
    is_over.set()
    visitor.join()
    assert failures == []
    assert psutil.Process(alone.process.pid).create_time() == begun
    # A broken file is refused, with a line in the present log.
    alone.configure("second", flavors="broken")
    alone.process.send_signal(signal.SIGHUP)
    refusal = "Not reloaded: [treeclaim]/metrics_of_flavors: "
    eventually(lambda: refusal in alone.log("second"), "it says so in its new log")
    assert "treeclaim_fits{" in alone.ask("/metrics")[1]
    assert alone.stop() == 0


def test_invalid_configuration_keeps_the_former_one(alone):
    schema_on(f"sqlite:///{alone.folder}/first.db")
    eventually(lambda: (answer := alone.ask("/ready")) and answer[0] == 200, "it is ready")
    alone.configure("second", "search_seconds = soon")
    alone.process.send_signal(signal.SIGHUP)
    eventually(lambda: "Not reloaded: " in alone.log("first"), "it says why")
    assert alone.ask("/ready")[0] == 200
    assert alone.log("second") == ""
    assert alone.stop() == 0
