# SPDX-License-Identifier: Apache-2.0
"""Worlds of contract page 95's notation in a running service: made, asked, and read back."""

import json
import re
import uuid

from tests.bodies import claim_of

_NAMESPACE = uuid.UUID(int=95)


def uuid_of(kind, name):
    """The uuid that stands for a name on the page."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind} {name}"))


def build(client, world, queries):
    """Create a world through the API, with the names that queries have."""
    for name in sorted(set(re.findall(r"CUSTOM_[A-Z0-9_]+", " ".join(queries)))):
        put(client, f"/traits/{name}", None)
        put(client, f"/resource_classes/{name}", None)
    body = {"providers": list(map(entry_of, world.providers)), "create_names": True}
    headers = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
    response = client.post("/treeclaim/providers", json=body, headers=headers)
    assert response.is_success, response.text
    for provider in world.providers:
        used = {name: stock.used for name, stock in provider.stock.items() if stock.used}
        if used:
            body = claim_of({uuid_of("provider", provider.name): {"resources": used}})
            put(client, f"/allocations/{uuid.uuid4()}", body)


def entry_of(provider):
    """An entry of a bulk write: a provider with all it has."""
    inventories = {
        name: {key: value for key, value in vars(stock).items() if key != "used"}
        for name, stock in provider.stock.items()
    }
    parent = provider.parent
    return {
        "uuid": uuid_of("provider", provider.name),
        "name": provider.name,
        "parent_provider_uuid": None if parent is None else uuid_of("provider", parent),
        "inventories": inventories,
        "traits": sorted(provider.traits),
        "aggregates": [uuid_of("aggregate", aggregate) for aggregate in provider.aggregates],
    }


def put(client, path, body):
    """Put something that must be taken."""
    response = client.put(path, json=body)
    assert response.is_success, (path, body, response.text)


def answered(client, query, versions):
    """Ask a request of the page and return the body of the answer, as bytes."""
    query = re.sub(r"<([\w.]+)>", lambda name: uuid_of("provider", name.group(1)), query)
    query = re.sub(r"\{([A-Z])\}", lambda name: uuid_of("aggregate", name.group(1)), query)
    response = client.get(
        f"/allocation_candidates?{query}",
        headers={"openstack-api-version": versions},
    )
    assert response.status_code == 200, response.text
    return response.content


def asked(client, query, version):
    """Ask a request of the page and return the body of the answer."""
    return json.loads(answered(client, query, f"placement {version}"))


def in_names(world, body, *, mappings_shown):
    """Translate an answer's candidates back to the names of a world."""
    names = {uuid_of("provider", provider.name): provider.name for provider in world.providers}
    candidates = []
    for candidate in body["allocation_requests"]:
        takes = frozenset(
            (names[provider], name, amount)
            for provider, resources in candidate["allocations"].items()
            for name, amount in resources["resources"].items()
        )
        mappings = frozenset(
            (suffix, frozenset(names[provider] for provider in providers))
            for suffix, providers in candidate.get("mappings", {}).items()
        )
        candidates.append((takes, mappings) if mappings_shown else (takes, None))
    return candidates
