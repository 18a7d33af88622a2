# SPDX-License-Identifier: Apache-2.0
"""SIGHUP renews all parts of `treeclaim admin`."""

import signal
import threading
import time

import psutil
import pytest

from tests.ports import free_port
from tests.servers import TREECLAIM, Server, answers, eventually, usual_environment
from tests.service import schema_on

pytestmark = pytest.mark.slow


class Alone(Server):
    """`treeclaim admin`, and its configuration file."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.configure("first")
        environment = usual_environment(folder, OS_PLACEMENT_CONFIG_DIR=str(folder))
        del environment["OS_TREECLAIM__ADMIN_LISTEN"]
        url = f"http://127.0.0.1:{self.port}"
        command = [*TREECLAIM, "admin"]
        super().__init__(command, environment, folder / "output", answers(f"{url}/live"))
        self.admin_url = url

    def configure(self, name, flavors='{"requests": {"one": "resources=VCPU:1"}}'):
        """Use the log, database and metrics of a name."""
        (self.folder / "flavors.json").write_text(flavors)
        (self.folder / "placement.conf").write_text(
            f"[DEFAULT]\nlog_file = {self.folder}/{name}.log\n[api]\nauth_strategy = noauth2\n"
            f"[placement_database]\nconnection = sqlite:///{self.folder}/{name}.db\n"
            f"[treeclaim]\nadmin_listen = 127.0.0.1:{self.port}\n"
            f"metrics_of_resources = {'none' if name == 'first' else 'cloud'}\n"
            f"metrics_of_flavors = {self.folder}/flavors.json\n"
        )

    def log_of(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def alone(tmp_path):
    server = Alone(tmp_path)
    server.start()
    yield server
    server.stop()


def test_reload_renews_log_database_and_metrics_in_the_same_process(alone):
    alone.await_status("/ready", 503)
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
    alone.send(signal.SIGHUP)
    alone.await_status("/ready", 200)
    eventually(lambda: "treeclaim_fits{" in alone.ask("/metrics")[1], "flavors are counted")
    is_over.set()
    visitor.join()
    assert failures == []
    assert psutil.Process(alone.process.pid).create_time() == begun
    # A broken file is refused, with a line in the present log.
    alone.configure("second", flavors="broken")
    alone.send(signal.SIGHUP)
    refusal = "Not reloaded: [treeclaim]/metrics_of_flavors: "
    eventually(lambda: refusal in alone.log_of("second"), "it says so in its new log")
    assert "treeclaim_fits{" in alone.ask("/metrics")[1]
    assert alone.stop() == 0
