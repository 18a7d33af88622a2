# SPDX-License-Identifier: Apache-2.0
"""A service with names that are hostile to terminals."""

import json
import re
import uuid
from contextlib import contextmanager

from tests.bodies import claim_of
from tests.server.fronts import running
from tests.servers import usual_environment
from tests.service import fresh_database, start_on
from treeclaim.client import Client
from treeclaim.client.aggregates import name_aggregates

MARK = "FORGED"
"""Begins each forged line, and proves that the hostile text was printed at all."""

COLOUR = "\x1b[38;5;213m"
"""A colour that no command of ours uses."""

PAYLOAD = (
    # The title and the clipboard of the terminal, its screen, a colour, the C1 form of the same.
    f"\x1b]0;title\x07\x1b]52;c;cHduZWQ=\x07\x1b[2J{COLOUR}\x9b31m\x9d0;title\x9c\x7f"
    # New lines of every kind, and a line that is written over.
    f"\r{MARK}\n{MARK}\r\n{MARK}\x0b{MARK}\x0c{MARK}\x1c{MARK}\x85{MARK}\u2028{MARK}\u2029{MARK}"
    # Characters that reverse the direction of writing, and invisible ones.
    "\u202egnp.\u2066\u200b\u200f\ufeff\U000e0041"
)
NAME = f"host{PAYLOAD} $(touch pwned) `touch pwned` 'quoted' \"quoted\" [bold]{{n}}"
AGGREGATE = str(uuid.UUID(int=7))
CLASS, TRAIT, KIND = "CUSTOM_EVIL_CLASS", "CUSTOM_EVIL_TRAIT", "EVIL_KIND"
CONSUMER, PROVIDER, FULL = (str(uuid.UUID(int=number)) for number in (1, 2, 3))
OWNER = f"owner{PAYLOAD}"
MIX = "EVIL_MIX"
ATTRIBUTE = "evil_attribute"
NAMED = (CLASS, TRAIT, KIND, AGGREGATE, MIX, ATTRIBUTE)
"""Names that this service has in order, and that a hostile one (or an old database) has not."""

CHANGES = "/treeclaim/changes"

_IN_JSON = json.dumps(PAYLOAD)[1:-1].encode()
HOLD = "6c4b2f7e-5a0e-4a58-9b3f-0d7c21f6a0b1"


class Hostile:
    """A service that adds the payload to the names and error texts that another one answers.

    Names of classes, traits and types have a form that the service itself insists on.
    """

    def __init__(self, application):
        self._application = application

    def __call__(self, environment, start_response):
        """Answer a request."""
        if environment["PATH_INFO"] == CHANGES and "text/event-stream" in str(
            environment.get("HTTP_ACCEPT")
        ):
            # It has no end, and uuids alone.
            return self._application(environment, start_response)
        begun = []
        chunks = self._application(environment, lambda *arguments: begun.append(arguments))
        try:
            body = b"".join(chunks)
        finally:
            getattr(chunks, "close", lambda: None)()
        (status, headers, *_), *_ = begun
        for name in NAMED:
            body = body.replace(name.encode(), name.encode() + _IN_JSON)
        body = re.sub(rb'("detail": ?")', rb"\1" + _IN_JSON.replace(b"\\", rb"\\"), body)
        kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
        start_response(status, [*kept, ("Content-Length", str(len(body)))])
        return [body]


def fill_service(client):
    """Create a host with hostile objects, and a full one."""
    attribute = f"{MARK}\u202egnp.\u2066\u200b $(touch pwned) '\"[bold] {ATTRIBUTE}"
    parts = {
        "inventories": {CLASS: {"total": 8}, "VCPU": {"total": 8}},
        "traits": [TRAIT],
        "aggregates": [AGGREGATE],
        "attributes": {ATTRIBUTE: attribute},
    }
    names = {PROVIDER: NAME, FULL: f"full{PAYLOAD}"}
    client.apply_providers([{"uuid": uuid, "name": names[uuid], **parts} for uuid in names])
    amounts = {PROVIDER: {"resources": {CLASS: 2, "VCPU": 1}}, FULL: {"resources": {"VCPU": 8}}}
    body = claim_of(amounts, project_id=OWNER, user_id=OWNER, consumer_type=KIND)
    client.call("PUT", f"/allocations/{CONSUMER}", json=body)
    terms = {"note": PAYLOAD, "projects": [OWNER]}
    body |= {"allocations": {PROVIDER: {"resources": {CLASS: 1}}}, "hold": terms}
    del body["consumer_type"]
    client.call("PUT", f"/allocations/{HOLD}", body, extended=True)
    name_aggregates(client, {AGGREGATE: f"rack{PAYLOAD}"})
    # The queries of a mix cannot be hostile, for the service reads them.
    requests = {f"request{PAYLOAD}": {"query": "resources=VCPU:1", "weight": 1}}
    client.call("PUT", f"/treeclaim/mixes/{MIX}", {"requests": requests})
    condition = {"effect": "no_new", "reason": PAYLOAD}
    client.call("PUT", f"/treeclaim/providers/{FULL}/conditions/BROKEN", condition)
    generation = client.get(f"/resource_providers/{FULL}")["generation"]
    body = {"resource_provider_generation": generation, "total": 4, "reserved": 0}
    client.call("PUT", f"/resource_providers/{FULL}/inventories/VCPU", json=body)


@contextmanager
def hostile_service(folder):
    """Run a hostile service, and one with the same database that has its names in order.

    Yields:
        The environment of commands that talk to the hostile one, and the URL of the other.
    """
    database = fresh_database(folder)
    with (
        start_on(database, folder, **{"treeclaim.pages": "true"}) as application,
        running(application, threads=8) as plain,
        running(Hostile(application), threads=8) as server,
    ):
        addresses = [
            f"http://127.0.0.1:{running_server.address[1]}" for running_server in (plain, server)
        ]
        with Client(addresses[0], "admin") as client:
            fill_service(client)
        environment = usual_environment(
            folder,
            TREECLAIM_ENDPOINT=addresses[1],
            OS_PLACEMENT_CONFIG_DIR=str(folder),
            OS_PLACEMENT_DATABASE__CONNECTION=database,
            OS_API__AUTH_STRATEGY="noauth2",
        )
        yield environment, addresses[0]


def find_harm(text):
    """Return the parts of a text that would control a terminal or imitate a line of the command."""
    forged = [line for line in text.split("\n") if line.lstrip().startswith(MARK)]
    return sorted({char for char in text if char != "\n" and not char.isprintable()}) + forged
