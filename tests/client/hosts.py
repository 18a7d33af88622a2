# SPDX-License-Identifier: Apache-2.0
"""A host to make claims on, and what is claimed."""

import uuid

HOST = str(uuid.UUID(int=1))
WHO = {"project_id": "p", "user_id": "u"}


def make_host(client):
    """Make the host, which has four VCPU."""
    body = {"name": "host", "uuid": HOST}
    client.call("POST", "/resource_providers", json=body)
    client.call(
        "PUT",
        f"/resource_providers/{HOST}/inventories",
        json={"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}},
    )


def held(client, consumer):
    """Return the amounts that a consumer holds, by provider and resource class."""
    allocations = client.get(f"/allocations/{consumer}")["allocations"]
    return {provider: allocation["resources"] for provider, allocation in allocations.items()}
