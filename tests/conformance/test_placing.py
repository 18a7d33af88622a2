# SPDX-License-Identifier: Apache-2.0
"""A response that a heuristic found is marked as approximate (contract page 98, section 2)."""

import pytest

from tests.bodies import wanted_by
from tests.reference.world import uuid_of

NEWEST = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}


def place(service, *consumers, query="resources=VCPU:2", **members):
    """Place consumers by a query."""
    request = wanted_by(
        [uuid_of(consumer) for consumer in consumers],
        *([query] if isinstance(query, str) else query),
    )
    return service.post("/treeclaim/placements", json={"requests": [request]} | members)


@pytest.fixture
def service(fresh_service):
    """A client of an empty service."""
    client = fresh_service()
    client.headers.update(NEWEST)
    return client


def test_heuristic_response_is_marked_as_approximate(service):
    """A host with 24 devices has far more than 50,000 candidates for ten isolated groups."""
    host, devices = uuid_of("large"), [uuid_of(f"device {number}") for number in range(24)]
    entries = [{"uuid": host, "name": "large", "inventories": {}}]
    for number, device in enumerate(devices):
        inventories = {"FPGA": {"total": 100 + number}}
        entries.append(
            {"uuid": device, "name": f"device {number}", "parent_provider_uuid": host}
            | {"inventories": inventories}
        )
    made = service.post("/treeclaim/providers", json={"providers": entries})
    assert made.is_success, made.text
    suffixes = [f"_{number}" for number in range(10)]
    groups = "&".join(f"resources{suffix}=FPGA:1" for suffix in suffixes)
    query = f"{groups}&isolate={','.join(suffixes)}&limit=2"
    for order, expected in (("spread_providers", True), ("spread", None)):
        ordered = f"{query}&order_by={order}"
        body = service.get(f"/allocation_candidates?{ordered}").json()
        assert body.get("approximate") is expected
        assert len(body["scores"]) == len(body["allocation_requests"]) == 2
        body = service.post("/treeclaim/candidates", json={"alternatives": [ordered]}).json()
        assert body.get("approximate") is expected
        answer = place(service, "consumer", query=ordered, dry_run=True)
        assert answer.status_code == 200, answer.text
        (placement,) = answer.json()["placements"]
        assert placement.get("approximate") is expected
