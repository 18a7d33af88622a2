# SPDX-License-Identifier: Apache-2.0
"""Clients that replacements of a service's processes must not disturb."""

import socket
import threading

import httpx

from tests.server.fronts import request_of
from tests.service import HEADERS

CLIENTS = 4


class Load:
    """Clients that send requests without a pause, each on a new connection, until stopped.

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
        headers = HEADERS | {"content-type": "application/json"}
        request = request_of("POST", "/resource_providers", headers, b'{"name":"slow"}')
        self._client.sendall(request[:-7])
        self._left = request[-7:]
        return self

    def finish(self):
        """Send the rest; return the first line of the response."""
        self._client.sendall(self._left)
        return self._client.makefile("rb").readline()

    def __exit__(self, *_):
        self._client.close()
