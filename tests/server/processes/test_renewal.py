# SPDX-License-Identifier: Apache-2.0
"""SIGHUP renews the configuration of each process of a service."""

import signal
import sqlite3
import ssl
import subprocess
import uuid
from contextlib import closing

import httpx
import psutil
import pytest

from tests.ports import free_port
from tests.server.processes.clients import HalfSentRequest
from tests.servers import eventually, service_environment, serving, usual_environment
from tests.service import HEADERS
from treeclaim.server.processes.children import ADMIN_NAME, LOADER_NAME, WORKER_NAME

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("faketime", "openssl"),
]

EXPIRY = r'treeclaim_certificate_expiry_timestamp_seconds{use="server"}'


class Configured:
    """The files of a service, which are written anew between its reloads."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "placement.conf"
        self.admin_port = free_port()
        self.certificate, self.key = folder / "one.pem", folder / "one.key"

    def write(self, name, *, metrics="none", policy=""):
        """Have log, database and policy of this name, and a certificate for it."""
        (self.folder / f"{name}.yaml").write_text(policy)
        self.path.write_text(
            f"[DEFAULT]\nlog_file = {self.log(name)}\n[api]\nauth_strategy = noauth2\n"
            f"[oslo_policy]\npolicy_file = {self.folder}/{name}.yaml\n"
            f"[placement_database]\nconnection = sqlite:///{self.database(name)}\n"
            f"sync_on_startup = true\n[treeclaim]\nadmin_listen = 127.0.0.1:{self.admin_port}\n"
            f"metrics_of_resources = {metrics}\n"
        )

    def certify(self, days):
        """Write another certificate in the place of the former, as programs do that renew it."""
        names = ["-keyout", self.folder / "new.key", "-out", self.folder / "new.pem"]
        subject = ["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1"]
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command = ["openssl", "req", "-x509", "-nodes", *key, *names, *subject]
        # The certificate was valid for long, and expires soon.
        begun = ["faketime", f"{120 - days} days ago", *command, "-days", "120"]
        subprocess.run(begun, check=True, capture_output=True)
        (self.folder / "new.pem").rename(self.certificate)
        (self.folder / "new.key").rename(self.key)

    def log(self, name):
        return self.folder / f"{name}.log"

    def database(self, name):
        return self.folder / f"{name}.db"

    def trusting(self):
        """The authority by which a client trusts the present certificate."""
        return ssl.create_default_context(cafile=str(self.certificate))


@pytest.fixture
def configured(tmp_path):
    """Files of the name "first"."""
    files = Configured(tmp_path)
    files.write("first")
    files.certify(10)
    return files


def running(files, *options, **how):
    """A service with these files, for a block."""
    environment = usual_environment(files.folder, OS_PLACEMENT_CONFIG_DIR=str(files.folder))
    del environment["OS_TREECLAIM__ADMIN_LISTEN"]
    arguments = [f"--config-file={files.path}", *options]
    return serving(environment, files.folder, *arguments, **how)


def open_files(process):
    """The paths of all files that a process has open, those too that are gone."""
    return {opened.path for opened in process.open_files()}


def shows_certificate(files, service):
    """Return whether a server shows the certificate that is in its file now."""
    address = (httpx.URL(service.url).host, httpx.URL(service.url).port)
    shown = ssl.get_server_certificate(address, timeout=60)
    return shown.strip() == files.certificate.read_text().strip()


def test_reload_renews_all_configuration_in_every_process(configured):
    url = f"https://127.0.0.1:{free_port()}"
    tls = [f"--tls-certificate={configured.certificate}", f"--tls-key={configured.key}"]
    trusting = configured.trusting()
    with running(configured, *tls, "--workers=2", url=url, verify=trusting) as service:
        service.admin_url = f"http://127.0.0.1:{configured.admin_port}"
        ready_text = service.await_status("/ready", 200)
        assert ready_text.startswith("ready, but the server's certificate expires on ")
        assert "The server's certificate expires on " in configured.log("first").read_text()
        service.await_workers(2)
        host = {"name": "host", "uuid": str(uuid.uuid4())}
        made = httpx.post(f"{url}/resource_providers", json=host, headers=HEADERS, verify=trusting)
        assert made.status_code == 200
        first_end = service.metric(EXPIRY)
        former = service.processes(ADMIN_NAME, WORKER_NAME, LOADER_NAME)
        assert len(former) == 4
        with HalfSentRequest(url, trusting) as request:
            configured.write(
                "second", metrics="cloud", policy='"placement:resource_providers:list": "!"\n'
            )
            configured.certify(100)
            service.send(signal.SIGHUP)
            eventually(lambda: shows_certificate(configured, service), "the certificate is new")
            eventually(
                lambda: "Stopping" in configured.log("first").read_text(),
                "both former workers are to end",
            )
            # A connection from before the reload is answered with the former configuration.
            assert request.finish() == b"HTTP/1.1 200 OK\r\n"
        assert psutil.wait_procs(former, timeout=120)[1] == []
        assert service.await_status("/ready", 200) == "ready\n"
        assert service.metric(EXPIRY) > first_end + 80 * 24 * 3600
        eventually(
            lambda: "treeclaim_resource_capacity" in service.ask("/metrics")[1], "metrics are told"
        )
        for path, status in (
            ("resource_providers", 403),
            (f"resource_providers/{host['uuid']}", 404),
        ):
            answer = httpx.get(f"{url}/{path}", headers=HEADERS, verify=configured.trusting())
            assert answer.status_code == status
        processes = [psutil.Process(service.process.pid)]
        processes += service.processes(ADMIN_NAME, WORKER_NAME, LOADER_NAME)
        assert len(processes) == 5
        former_files = {str(configured.log("first")), str(configured.database("first"))}
        for process in processes:
            opened = open_files(process)
            assert not former_files & opened, process
        # Half of the next renewal is there when a worker ends.
        configured.key.write_text("")
        killed = service.processes(WORKER_NAME)[0]
        killed.kill()
        eventually(lambda: not killed.is_running(), "it has ended")
        service.await_workers(2)
        assert shows_certificate(configured, service)
        assert "certificate and key" not in configured.log("second").read_text()
        assert service.stop() == 0


def test_reloads_do_not_accumulate_metrics_files(tmp_path):
    folder = tmp_path / "metrics"
    folder.mkdir()
    environment = service_environment(tmp_path, PROMETHEUS_MULTIPROC_DIR=str(folder))
    counts = []
    with serving(environment, tmp_path, "--workers=2") as service:
        for reloads in range(1, 4):
            service.await_workers(2)
            httpx.get(f"{service.url}/resource_providers", headers=HEADERS).raise_for_status()
            former = service.processes(WORKER_NAME, LOADER_NAME)
            service.send(signal.SIGHUP)
            assert psutil.wait_procs(former, timeout=120)[1] == []
            eventually(
                lambda: service.log.read_text().count("Stopping") == reloads,  # noqa: B023
                "all are replaced",
            )
            counts.append(len(list(folder.iterdir())))
    # Files of one ended generation may exist beside those of the running one.
    assert max(counts[1:]) <= counts[0] + 2, "the sums of all that ended are two files"


def test_reload_that_cannot_load_the_inventory_replaces_nothing(tmp_path):
    environment = service_environment(tmp_path)
    database = environment["OS_PLACEMENT_DATABASE__CONNECTION"].removeprefix("sqlite:///")
    with serving(environment, tmp_path, "--workers=2") as service:
        service.await_workers(2)
        host = {"name": "host", "uuid": str(uuid.uuid4())}
        httpx.post(f"{service.url}/resource_providers", json=host, headers=HEADERS)
        former = service.workers()
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("ALTER TABLE inventories RENAME TO moved")
        service.send(signal.SIGHUP)
        eventually(lambda: "Not reloaded" in service.log.read_text(), "the reload is refused")
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("ALTER TABLE moved RENAME TO inventories")
        assert service.workers() == former
        httpx.get(f"{service.url}/resource_providers", headers=HEADERS).raise_for_status()
