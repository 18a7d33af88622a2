# SPDX-License-Identifier: Apache-2.0
"""Lists in bodies may be as long as the contract permits, and one entry more is 400 (pages 98 to 102)."""

import uuid

import pytest

HEADERS = {"openstack-api-version": "placement 1.39, treeclaim 1.0"}
OWNER = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
QUERY = "resources=VCPU:1"


def uuids(count):
    """As many UUIDs, the same each time."""
    return [str(uuid.UUID(int=number)) for number in range(1, count + 1)]


def placements(**members):
    """A dry run that places a consumer; members of its request may be replaced."""
    request = {"alternatives": [QUERY], "consumers": uuids(1)} | OWNER | members
    return {"requests": [request], "partial": True, "dry_run": True}


def claim(**members):
    return {"allocations": {}, "consumer_generation": None} | OWNER | members


CLAIM = f"PUT /allocations/{uuid.UUID(int=1_000_000)}"
CASES = {
    "consumers of placements": (
        1_000,
        "POST /treeclaim/placements",
        lambda count: placements(consumers=uuids(count)),
    ),
    "alternatives of placements": (
        16,
        "POST /treeclaim/placements",
        lambda count: placements(alternatives=[QUERY] * count),
    ),
    "requests of placements": (
        64,
        "POST /treeclaim/placements",
        lambda count: {
            "requests": [
                {"alternatives": [QUERY], "consumers": [consumer]} | OWNER
                for consumer in uuids(count)
            ],
            "partial": True,
            "dry_run": True,
        },
    ),
    "kept requests": (
        1_000,
        "POST /treeclaim/requests",
        lambda count: {"requests": dict.fromkeys(uuids(count))},
    ),
    "alternatives of a kept request": (
        16,
        "POST /treeclaim/requests",
        lambda count: {"requests": {uuids(1)[0]: [QUERY] * count}},
    ),
    "bytes of a kept request": (
        16_384,
        "POST /treeclaim/requests",
        lambda count: {
            "requests": {uuids(1)[0]: [f"{QUERY}&limit=".ljust(count - len('[""]'), "1")]}
        },
    ),
    "terms of holds": (
        1_000,
        "POST /treeclaim/holds",
        lambda count: {"holds": {holder: {"note": "n"} for holder in uuids(count)}},
    ),
    "names of aggregates": (
        10_000,
        "POST /treeclaim/aggregates/names",
        lambda count: {"names": {aggregate: f"a{aggregate}" for aggregate in uuids(count)}},
    ),
    "providers of a batch": (
        1_000,
        "POST /treeclaim/providers",
        lambda count: {"providers": [{"uuid": each, "name": each} for each in uuids(count)]},
    ),
    "holds that a claim draws from": (64, CLAIM, lambda count: claim(from_holds=uuids(count))),
    "tolerated keys of a claim": (
        64,
        CLAIM,
        lambda count: claim(tolerates=[f"KEY_{number}" for number in range(count)]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_list_beyond_its_bound_is_refused_and_changes_nothing(fresh_service, name):
    most, operation, make = CASES[name]
    method, path = operation.split()
    client = fresh_service()
    refused = client.request(method, path, json=make(most + 1), headers=HEADERS)
    assert refused.status_code == 400, refused.text
    assert client.get("/resource_providers", headers=HEADERS).json() == {"resource_providers": []}
    accepted = client.request(method, path, json=make(most), headers=HEADERS)
    assert accepted.status_code != 400, accepted.text[:500]
