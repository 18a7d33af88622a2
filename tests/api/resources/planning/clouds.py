# SPDX-License-Identifier: Apache-2.0
"""Small clouds for tests of plans."""

import uuid

from tests.bodies import claim_of

HEADERS = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
_NAMESPACE = uuid.UUID(int=101)


def uuid_of(name):
    return str(uuid.uuid5(_NAMESPACE, name))


def host(name, rack=None, parent=None, traits=(), **amounts):
    """An entry of POST /treeclaim/providers."""
    return {
        "uuid": uuid_of(name),
        "name": name,
        "parent_provider_uuid": None if parent is None else uuid_of(parent),
        "inventories": {kind: {"total": total} for kind, total in amounts.items()},
        "aggregates": [uuid_of(rack)] if rack else [],
        "traits": list(traits),
    }


def applied(client, *entries):
    """Write providers."""
    body = {"providers": list(entries), "create_names": True}
    answer = client.post("/treeclaim/providers", json=body)
    assert answer.status_code == 200, answer.text


def instance(client, consumer, at, amount):
    """Write an instance with its request."""
    allocations = {uuid_of(at): {"resources": {"VCPU": amount}}}
    body = claim_of(allocations, request=[f"resources=VCPU:{amount}"])
    answer = client.put(f"/allocations/{uuid_of(consumer)}", json=body)
    assert answer.status_code == 204, answer.text
