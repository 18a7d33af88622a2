# SPDX-License-Identifier: Apache-2.0
"""A running `treeclaim serve`, its processes, and clients that its changes must not disturb."""

import re
import socket
import threading
from contextlib import suppress

import httpx
import psutil

from tests.servers import eventually
from tests.service import HEADERS

ADMIN, WORKER, LOADER = "treeclaim-admin", "treeclaim-work", "treeclaim-load"
CLIENTS = 4


def processes_of(server, name):
    """The processes below the first process of a server that have a name."""
    pids = []
    for child in psutil.Process(server.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.name() == name and child.status() != psutil.STATUS_ZOMBIE:
                pids.append(child)
    return pids


def workers_of(server):
    """The ids of the processes that answer."""
    return {process.pid for process in processes_of(server, WORKER)}


class Service:
    """A running `treeclaim serve` with an admin listener."""

    def __init__(self, server, admin_url=None):
        self.server = server
        self.url = server.url
        self.admin_url = admin_url

    def processes(self, name):
        """Its processes of a name."""
        return processes_of(self.server, name)

    def await_process(self, name):
        """Its process of a name, when there is one."""
        return eventually(lambda: self.processes(name), f"there is {name}")[0]

    def ask(self, path):
        """Status and text of a page of the admin listener; None while there is no answer."""
        with suppress(httpx.TransportError):
            answer = httpx.get(self.admin_url + path, timeout=30)
            return answer.status_code, answer.text
        return None

    def committed(self):
        """The number of commits that the admin listener knows."""
        text = self.ask("/metrics")[1]
        return float(re.search(r"^treeclaim_feed_committed (.*)$", text, re.MULTILINE)[1])

    def await_status(self, path, status):
        """The text of a page once it has a status."""
        return eventually(
            lambda: answer[1] if (answer := self.ask(path)) and answer[0] == status else None,
            f"{path} answers {status}",
        )


class Load:
    """Clients that ask without a pause, each time on a new connection, until told to stop.

    Attributes:
        answered: How many requests had the right answer.
        failures: Other events.
    """

    def __init__(self, url):
        self.answered = 0
        self.failures = []
        self._url = f"{url}/resource_providers"
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]

    def _ask(self):
        headers = HEADERS | {"connection": "close"}
        with httpx.Client(headers=headers, timeout=60) as client:
            while not self._stop.is_set():
                try:
                    status = str(client.get(self._url).status_code)
                except httpx.HTTPError as error:
                    status = repr(error)
                with self._lock:
                    if status == "200":
                        self.answered += 1
                    else:
                        self.failures.append(status)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()


class HalfSentRequest:
    """A request of which half is sent when a block begins."""

    def __init__(self, url, trusting=None):
        self._address = (httpx.URL(url).host, httpx.URL(url).port)
        self._trusting = trusting

    def __enter__(self):
        self._client = socket.create_connection(self._address, timeout=60)
        if self._trusting is not None:
            self._client = self._trusting.wrap_socket(
                self._client, server_hostname=self._address[0]
            )
        headers = HEADERS | {
            "host": "a",
            "content-type": "application/json",
            "content-length": "15",
        }
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(["POST /resource_providers HTTP/1.1", *lines, "", '{"name":'])
        self._client.sendall(head.encode())
        return self

    def finish(self):
        """Send the rest; return the first line of the response."""
        self._client.sendall(b'"slow"}')
        return self._client.makefile("rb").readline()

    def __exit__(self, *_):
        self._client.close()
