# SPDX-License-Identifier: Apache-2.0
"""Changes of a cloud that pages show, undone in the end."""

import uuid
from contextlib import contextmanager

from treeclaim.model.parts import CONDITIONS, PARTS

_PART_BY_NAME = {part.name: part for part in PARTS}


def uuid_of(client, name):
    """Return the uuid of a provider."""
    [row] = client.providers(name=name)
    return row["uuid"]


def put_part(client, provider, name, values):
    """Replace a part of a provider; return its former values."""
    path = _PART_BY_NAME[name].path(provider)
    document = client.call("GET", path, extended=True)
    generation = document["resource_provider_generation"]
    body = {name: values, "resource_provider_generation": generation}
    client.call("PUT", path, body, extended=True)
    return document[name]


@contextmanager
def changed(client, provider, name, values):
    """Replace a part of a provider for a while."""
    former = put_part(client, provider, name, values)
    try:
        yield
    finally:
        put_part(client, provider, name, former)


@contextmanager
def claimed(client, amounts, **members):
    """Let a new consumer hold amounts by provider for a while; yield its uuid."""
    consumer = str(uuid.uuid4())
    candidate = {"allocations": {at: {"resources": part} for at, part in amounts.items()}}
    client.claim(consumer, candidate, **{"project_id": "p", "user_id": "u"} | members)
    try:
        yield consumer
    finally:
        client.release(consumer)


@contextmanager
def conditioned(client, name, *keys, **members):
    """Give a provider conditions for a while."""
    path = CONDITIONS.path(uuid_of(client, name))
    for key in keys:
        client.call("PUT", f"{path}/{key}", {"effect": "no_new"} | members)
    try:
        yield
    finally:
        for key in keys:
            client.call("DELETE", f"{path}/{key}")
