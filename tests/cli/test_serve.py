# SPDX-License-Identifier: Apache-2.0
"""Listening of `treeclaim serve`, and requests while its processes change."""

import re
import signal
import socket
import ssl
import stat
import subprocess
import uuid

import httpx
import psutil
import pytest

from tests.cli.services import run_refused_command
from tests.ports import free_port
from tests.server.processes.clients import Load
from tests.servers import TREECLAIM, eventually, running, service_environment, serving
from treeclaim.cli.serve import Serve
from treeclaim.client import Client
from treeclaim.server.processes.children import LOADER_NAME
from treeclaim.server.processes.listening import make_tls_context
from treeclaim.server.settings import ServerSettings

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


@pytest.fixture
def environment(tmp_path):
    """The environment of a service with a database of its own and no configuration files."""
    return service_environment(tmp_path)


@pytest.fixture
def url():
    """Where a service may listen."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def service_of_the_module(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    with serving(service_environment(folder), folder, "--workers=2") as service:
        yield service


@pytest.fixture
def shared_service(service_of_the_module):
    """A service of two workers, whatever a test before has done to its processes."""
    service_of_the_module.await_workers(2)
    return service_of_the_module


def serve_on_socket(environment, tmp_path, path, *options):
    """Run the service on a Unix socket for a block; yields the server."""

    def is_ready():
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(60)
            if probe.connect_ex(str(path)) != 0:
                return False
            probe.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return probe.recv(12) == b"HTTP/1.1 200"

    command = [*TREECLAIM, "serve", f"--unix-socket={path}", *options]
    return running(command, environment, tmp_path / "log", is_ready)


@pytest.mark.slow
def test_a_reload_under_load_loses_no_request_and_no_line(environment, tmp_path, url):
    with serving(environment, tmp_path, url=url) as service:
        before = service.await_workers(1)
        with Load(url) as load:
            eventually(lambda: load.answered > 20, "requests are answered")
            service.send(signal.SIGHUP)
            service.await_workers(1, before)
            so_far = load.answered
            eventually(lambda: load.answered > so_far + 20, "the new ones answer")
        assert load.failures == []
        assert service.stop() == 0
    lines = re.findall(r'"GET /resource_providers" status: 200', service.log.read_text())
    assert len(lines) == load.answered


@pytest.mark.slow
def test_reload_with_invalid_configuration_is_refused_and_logged(shared_service):
    service, file = shared_service, shared_service.log.parent / "placement.conf"
    before = service.workers()
    file.write_text("[placement]\nmax_allocation_candidates = many\n")
    service.send(signal.SIGHUP)
    line = eventually(
        lambda: re.search("Not reloaded: .*", service.log.read_text()), "it is refused"
    )
    assert "max_allocation_candidates" in line[0]
    assert service.workers() == before
    assert httpx.get(service.url, timeout=60).status_code == 200
    file.unlink()
    service.send(signal.SIGHUP)
    service.await_workers(2, before)


@pytest.mark.slow
def test_killed_service_leaves_no_processes(environment, tmp_path, url):
    with serving(environment, tmp_path, "--workers=2", url=url) as service:
        service.await_workers(2)
        children = psutil.Process(service.process.pid).children(recursive=True)
        assert len(children) == 3, "a loader and two workers"
        service.stop(signal.SIGKILL)
        assert psutil.wait_procs(children, timeout=120)[1] == []
    with serving(environment, tmp_path, url=url):
        assert httpx.get(url, timeout=60).status_code == 200


@pytest.mark.slow
def test_the_service_listens_on_a_unix_socket(environment, tmp_path):
    path = tmp_path / "placement.sock"
    with serve_on_socket(environment, tmp_path, path, "--unix-socket-mode=660") as service:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), headers=HEADERS) as http:
            assert http.get("http://localhost/resource_providers").status_code == 200
        message = run_refused_command(environment, "serve", "--unix-socket", str(path))
        assert "another server does" in message
        assert service.stop() == 0
    assert '"GET /resource_providers" status: 200' in service.log.read_text()
    assert not path.exists()


@pytest.mark.slow
def test_stale_unix_socket_is_replaced(environment, tmp_path):
    path = tmp_path / "placement.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with serve_on_socket(environment, tmp_path, path):
        pass


def run_openssl(*arguments):
    subprocess.run(
        ["openssl", *(str(argument) for argument in arguments)], check=True, capture_output=True
    )


@pytest.fixture(scope="module")
def certificate(openssl, tmp_path_factory):
    """A certificate for servers and clients, which is its own authority, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    certificate, key = folder / "one.pem", folder / "one.key"
    names = ["-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1"]
    names += ["-addext", "subjectAltName=IP:127.0.0.1"]
    run_openssl("req", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048", *names)
    return certificate, key


def tls_options(certificate):
    """The options that name certificate and key."""
    return [f"--tls-certificate={certificate[0]}", f"--tls-key={certificate[1]}"]


def trusting(certificate):
    """The TLS context of a client that trusts the service."""
    return ssl.create_default_context(cafile=certificate[0])


@pytest.fixture(scope="module")
def tls_service(tmp_path_factory, certificate):
    folder = tmp_path_factory.mktemp("tls")
    url = f"https://127.0.0.1:{free_port()}"
    options = tls_options(certificate)
    environment = service_environment(folder)
    with serving(environment, folder, *options, url=url, verify=trusting(certificate)) as service:
        yield service


@pytest.mark.slow
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_service_accepts_tls_connections(tls_service, certificate, version):
    context = trusting(certificate)
    context.minimum_version = context.maximum_version = version
    with httpx.Client(base_url=tls_service.url, verify=context, headers=HEADERS) as http:
        created = http.post(
            "/resource_providers",
            json={"name": f"host {version.name}"},
            headers={"openstack-api-version": "placement 1.0"},
        )
    assert created.headers["location"].startswith(f"{tls_service.url}/resource_providers/")


@pytest.mark.slow
def test_clients_without_a_certificate_are_refused_where_one_is_required(
    environment, tmp_path, url, certificate
):
    url = url.replace("http:", "https:")
    known = trusting(certificate)
    known.load_cert_chain(*certificate)
    options = [*tls_options(certificate), f"--tls-client-ca={certificate[0]}"]
    with serving(environment, tmp_path, *options, url=url, verify=known):
        assert httpx.get(url, verify=known).status_code == 200
        with pytest.raises(httpx.HTTPError):
            httpx.get(url, verify=trusting(certificate))


@pytest.mark.slow
def test_traditional_tls_key_works_and_mismatched_key_is_refused(
    environment, tmp_path, certificate
):
    old, foreign = tmp_path / "old.pem", tmp_path / "foreign.pem"
    run_openssl("genpkey", "-algorithm", "RSA", "-out", foreign)
    run_openssl("rsa", "-traditional", "-in", certificate[1], "-out", old)
    wrong = tls_options((certificate[0], foreign))
    missing = tls_options((certificate[0], "/nowhere.pem"))
    for options, message in ((wrong, "mismatch"), (missing, "No such file")):
        text = run_refused_command(environment, "serve", f"--port={free_port()}", *options)
        assert f"--tls-certificate {certificate[0]} with --tls-key" in text
        assert message in text
    arguments = tls_options((certificate[0], old))
    options = Serve().get_parser("treeclaim serve").parse_args(arguments)
    assert make_tls_context(ServerSettings(**vars(options))) is not None


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_lost_loader_is_replaced_without_losing_a_request(shared_service, number):
    service = shared_service
    (lost,), former = service.processes(LOADER_NAME), service.workers()
    reports = service.log.read_text().count("Another loader is started: the loader has ")
    with Load(service.url) as load:
        lost.send_signal(number)
        eventually(lambda: set(service.processes(LOADER_NAME)) - {lost}, "another loader runs")
        service.await_workers(2, former)
        so_far = load.answered
        eventually(lambda: load.answered > so_far + 20, "the new ones answer")
    assert load.failures == []
    text = service.log.read_text()
    assert text.count("Another loader is started: the loader has ") > reports


@pytest.mark.slow
def test_worker_forked_after_changes_shows_them(shared_service):
    service = shared_service
    before, (loaded,) = service.await_workers(2), service.processes(LOADER_NAME)
    with Client(service.url, "admin") as client:
        for name in ("first", "second"):
            entry = {
                "name": name,
                "uuid": str(uuid.uuid4()),
                "inventories": {"VCPU": {"total": 1}},
            }
            client.apply_providers([entry])
    for worker in before:
        worker.kill()
    candidates_url = f"{service.url}/allocation_candidates?resources=VCPU:1"
    answer = httpx.get(candidates_url, headers=HEADERS, timeout=60)
    assert len(answer.json()["allocation_requests"]) == 2
    assert not before & service.workers()
    assert service.processes(LOADER_NAME) == [loaded]


@pytest.fixture
def systemd(tmp_path):
    """A socket that listens where systemd would."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify.sock"))
        listener.settimeout(120)
        yield listener


def next_notice(systemd):
    """The names and values that the service sends next."""
    return dict(line.split("=", 1) for line in systemd.recv(4096).decode().splitlines())


@pytest.mark.slow
def test_systemd_is_notified_and_sigterm_stops_cleanly(tmp_path, url, systemd):
    environment = service_environment(tmp_path, NOTIFY_SOCKET=systemd.getsockname())
    with serving(environment, tmp_path, url=url) as service:
        assert next_notice(systemd)["READY"] == "1"
        line = re.search(r"INFO treeclaim.wsgi \[-\] (.*)", service.log.read_text())[1]
        assert re.fullmatch(
            r"Treeclaim \S+ on sqlite, authentication noauth2, workers 1 x 32 threads, "
            r"0 providers loaded in [0-9.]+ s",
            line,
        )
        service.send(signal.SIGHUP)
        assert next_notice(systemd).keys() == {"RELOADING", "MONOTONIC_USEC"}
        assert next_notice(systemd)["READY"] == "1"
        # Idle, with a connection that is kept open.
        with httpx.Client() as http:
            assert http.get(url).status_code == 200
            process = service.process
            service.send(signal.SIGTERM)
            assert next_notice(systemd) == {"STOPPING": "1"}
            assert process.wait(timeout=20) == 0
    lines = service.log.read_text().splitlines()
    form = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ [A-Z]+ [a-z._]+ \[.*?\] ")
    assert [line for line in lines if not form.match(line)] == []


@pytest.mark.slow
def test_stop_does_not_wait_for_a_reload_blocked_by_the_database(environment, tmp_path, url):
    file = tmp_path / "placement.conf"
    database_url = environment.pop("OS_PLACEMENT_DATABASE__CONNECTION")
    file.write_text(f"[placement_database]\nconnection = {database_url}\n")
    with serving(environment, tmp_path, url=url) as service:
        nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
        file.write_text(f"[placement_database]\nconnection = {nowhere}\n")
        process = service.process
        service.send(signal.SIGHUP)
        eventually(lambda: "cannot be reached" in service.log.read_text(), "the reload waits")
        service.send(signal.SIGTERM)
        # Ten attempts with ten seconds between them would be far longer.
        assert process.wait(timeout=30) == 0


@pytest.mark.slow
def test_a_worker_that_holds_too_much_memory_is_replaced(environment, tmp_path, url):
    with serving(environment, tmp_path, "--worker-max-memory=1", url=url) as service:
        before = service.workers()
        service.await_workers(1, before)
        assert httpx.get(url, timeout=60).status_code == 200
