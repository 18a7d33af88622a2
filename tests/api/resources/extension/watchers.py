# SPDX-License-Identifier: Apache-2.0
"""Watchers over HTTP: answers, streams of events, and the writes that they see."""

import json
from contextlib import contextmanager

import httpx

from tests.api.resources.extension.clouds import EXTENDED, uuid_of
from tests.bodies import claim_of
from tests.server.fronts import running
from tests.servers import eventually
from tests.service import HEADERS, application_on
from treeclaim.server.http.table import Phase

PATH = "/treeclaim/changes"
EVENTS = {"accept": "text/event-stream"}
SECONDS = 60
"""Seconds that a test waits, on a busy machine, for an event that is due within a second."""


class Event:
    """A server-sent event, or a comment.

    Attributes:
        id, name, data: As sent; None where they were not. Data is read as JSON.
    """

    def __init__(self, lines):
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        self.id = fields.get("id")
        self.name = fields.get("event")
        self.data = json.loads(fields["data"]) if "data" in fields else None

    @property
    def is_comment(self):
        """Whether the event has no data: clients only store its id."""
        return self.data is None


def heard(response):
    """The events and comments of a stream, as they come."""
    lines = []
    for line in response.iter_lines():
        if line:
            lines.append(line)
        elif lines:
            yield Event(lines)
            lines = []


class Place:
    """A service behind its own server, with a client of it."""

    def __init__(self, server):
        """Use a server that runs."""
        self.server = server
        host, port = server.address
        self.http = httpx.Client(
            base_url=f"http://{host}:{port}",
            headers=HEADERS | EXTENDED,
            timeout=SECONDS,
            limits=httpx.Limits(max_connections=None),
        )

    def changes(self, **parameters):
        """An answer in JSON."""
        answer = self.http.get(PATH, params=parameters)
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-cache"
        return answer.json()

    @property
    def cursor(self):
        return self.changes()["cursor"]

    @contextmanager
    def stream(self, headers=None, *, comments=False, **parameters):
        """Yield the events of a stream.

        The server sends a comment after a while without events. A stalled machine receives one before any event, so
        comments are skipped unless requested.
        """
        wanted = EVENTS | (headers or {})
        with self.http.stream("GET", PATH, params=parameters, headers=wanted) as response:
            assert response.status_code == 200, response.read()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield (event for event in heard(response) if comments or not event.is_comment)

    def write(self, method, path, body=None):
        """Make a write, which must succeed."""
        answer = self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer

    def add(self, name):
        self.write("POST", "/resource_providers", {"name": name, "uuid": uuid_of(name)})
        return uuid_of(name)

    def stock(self, uuid, total=100):
        """Give a provider an inventory of VCPU."""
        entry = {"uuid": uuid, "inventories": {"VCPU": {"total": total}}}
        self.write("POST", "/treeclaim/providers", {"providers": [entry]})

    def claim(self, consumer, *providers, generation=None):
        body = claim_of(
            {uuid: {"resources": {"VCPU": 1}} for uuid in providers},
            consumer_generation=generation,
        )
        self.write("PUT", f"/allocations/{consumer}", body)

    def watching(self):
        """The number of connections that watch."""
        return self.server.front.table.count(Phase.WATCHING)

    def until_watching(self, count):
        """Wait until so many connections watch."""
        eventually(lambda: self.watching() == count, f"{count} watch", SECONDS)


@contextmanager
def place_on(kind, folder, limits=None, **overrides):
    """A service on an empty database, behind the server of `treeclaim serve` in this process."""
    with (
        application_on(kind, folder, **overrides) as application,
        running(application, threads=4, **(limits or {})) as server,
    ):
        place = Place(server)
        try:
            yield place
        finally:
            place.http.close()
