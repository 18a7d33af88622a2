# SPDX-License-Identifier: Apache-2.0
"""`treeclaim serve` as a deployment runs it: several worker processes on a real database."""

import time
from contextlib import contextmanager, suppress

import httpx
import psutil

from tests import servers
from tests.ports import free_port
from tests.servers import NO_CERTIFICATES, TREECLAIM, eventually, service_environment
from tests.service import HEADERS
from treeclaim.server.processes.children import WORKER_NAME


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


class Service(servers.Server):
    """A running service."""

    def __init__(self, command, environment, log, url):
        """Describe a service at a URL."""
        super().__init__(command, environment, log, self.answers)
        self.url = url

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
def running(database, folder, workers=4, threads=4, prefix=(), **environment):
    """Run the service; yield it when it answers and has all its workers.

    Its warnings and errors are printed when the block fails, for the report of the test.
    """
    port = free_port()
    log = folder / f"service-{port}.log"
    command = [*prefix, *TREECLAIM, "serve", f"--port={port}"]
    command += [f"--workers={workers}", f"--threads={threads}"]
    variables = service_environment(folder, database, **environment)
    service = Service(command, variables, log, f"http://127.0.0.1:{port}")
    service.start()
    try:
        # The first of them answers already while the others are born.
        eventually(lambda: len(service.workers()) >= workers)
        yield service
    except BaseException:
        lines = log.read_text(errors="replace").splitlines()
        print(*(line for line in lines if " INFO " not in line), sep="\n")
        raise
    finally:
        service.stop()
