# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve` as a deployment runs it: several worker processes on a real database."""

import os
import signal
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from tests import authorities
from tests.ports import free_port
from treeclaim.server.processes.children import WORKER_NAME

HEADERS = {
    "x-auth-token": "admin",
    "openstack-api-version": "placement 1.39",
    "accept": "application/json",
}
START_SECONDS = 180
# Nothing is encrypted here, and reading certificates takes longer than most requests.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def client_of(url, **options):
    """An HTTP client with full rights."""
    return httpx.Client(
        base_url=url,
        headers=HEADERS,
        timeout=60,
        verify=NO_CERTIFICATES,
        trust_env=False,
        **options,
    )


ATTEMPTS = 40
"""Attempts of a request to a busy service, which says itself when to try again."""

_PAUSE = 0.5


def body_of(client, path, *, method="GET", pause=_PAUSE, **options):
    """The JSON of what is stored; a database that is busy or away for a moment is asked again.

    Raises:
        AssertionError: if it is another answer than 200, with its status and text.
    """
    for number in range(ATTEMPTS):
        answer = client.request(method, path, **options)
        if answer.status_code != 503 or number == ATTEMPTS - 1:
            break
        time.sleep(pause)
    assert answer.status_code == 200, (path, answer.status_code, answer.text, number + 1)
    return answer.json()


def eventually(question, seconds=180, pause=0.05):
    """Ask until the answer is true; return it."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{question} was not true in {seconds} seconds"
        time.sleep(pause)


def environment_of(database, folder, **more):
    """The environment of a command that works on a database, with no configuration files."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        authorities.VARIABLE: os.environ[authorities.VARIABLE],
        "HOME": str(folder),
        "OS_PLACEMENT_CONFIG_DIR": str(folder),
        "OS_PLACEMENT_DATABASE__CONNECTION": database,
        "OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP": "true",
        "OS_API__AUTH_STRATEGY": "noauth2",
        **more,
    }


class Service:
    """A running service."""

    def __init__(self, process, port, log):
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.log = log

    def workers(self):
        """The processes that answer requests, without those that they fork for long questions."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            # One that has just died is no worker.
            with suppress(psutil.NoSuchProcess):
                if child.name() == WORKER_NAME and child.parent().name() != WORKER_NAME:
                    found.append(child)
        return found

    def answers(self):
        """Return whether a request that needs the database gets a response."""
        with suppress(httpx.HTTPError), client_of(self.url) as client:
            return client.get("/resource_providers?limit=1&name=nobody").status_code in {200, 400}
        return False


@contextmanager
def _shown_on_failure(log):
    """Print what a service says of the failure of a block, for the report of the test."""
    try:
        yield
    except BaseException:
        lines = log.read_text(errors="replace").splitlines()
        print(*(line for line in lines if " INFO " not in line), sep="\n")
        raise


@contextmanager
def running(database, folder, workers=4, threads=4, prefix=(), **environment):
    """Run the service; yield it when it answers and has all its workers."""
    port = free_port()
    log = Path(folder) / f"service-{port}.log"
    command = [
        *prefix,
        *(sys.executable, "-m", "treeclaim", "serve", "--port", str(port)),
        *("--workers", str(workers), "--threads", str(threads)),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment_of(database, folder, **environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    service = Service(process, port, log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not service.answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text(errors="replace"))
            time.sleep(0.05)
        # The first of them answers already while the others are born.
        eventually(lambda: len(service.workers()) >= workers)
        with _shown_on_failure(log):
            yield service
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)
