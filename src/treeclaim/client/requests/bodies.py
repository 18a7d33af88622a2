# SPDX-License-Identifier: Apache-2.0
"""Bodies that write allocations, in the form of each microversion (contract page 70)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.model.microversions import Feature

NOBODY = "00000000-0000-0000-0000-000000000000"
"""Project and user of claims without a known owner."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of allocations.

    Attributes:
        project_id, user_id: Ids.
        consumer_type: Such as INSTANCE.
    """

    project_id: str
    user_id: str
    consumer_type: str


def claim(
    candidate: Mapping[str, Any], owner: Owner, present: Mapping[str, Any], minor: int
) -> dict[str, Any]:
    """Return the body of PUT /allocations/{consumer}.

    Args:
        candidate: An allocation request, in this version's form or that of 1.12 and later.
        owner: Whose it will be.
        present: What GET of the consumer says.
        minor: Microversion 1.N.
    """
    amounts = by_provider(candidate["allocations"])
    if minor < Feature.ALLOCATIONS_BY_PROVIDER:
        body: dict[str, Any] = {
            "allocations": [
                {"resource_provider": {"uuid": uuid}, "resources": resources}
                for uuid, resources in amounts.items()
            ]
        }
    else:
        body = {
            "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()}
        }
    if minor >= Feature.ALLOCATION_OWNERS_REQUIRED:
        body |= {"project_id": owner.project_id, "user_id": owner.user_id}
    if minor >= Feature.CONSUMER_GENERATIONS:
        body["consumer_generation"] = present.get("consumer_generation")
    if minor >= Feature.MAPPINGS and "mappings" in candidate:
        body["mappings"] = candidate["mappings"]
    if minor >= Feature.CONSUMER_TYPES:
        body["consumer_type"] = owner.consumer_type
    return body


def is_claimed(candidate: Mapping[str, Any], owner: Owner, present: Mapping[str, Any]) -> bool:
    """Return whether a consumer has exactly the allocations and the owner of a claim.

    Args:
        candidate: An allocation request.
        owner: The owner in the claim.
        present: The response to GET of the consumer; servers below 1.12 show no owner.
    """
    is_owned = all(
        present.get(name, value) == value
        for name, value in (("project_id", owner.project_id), ("user_id", owner.user_id))
    )
    return is_owned and by_provider(present["allocations"]) == by_provider(
        candidate["allocations"]
    )


def move(
    source: tuple[str, Mapping[str, Any]], target: tuple[str, Mapping[str, Any]], minor: int
) -> dict[str, Any]:
    """Return the body of POST /allocations that gives one consumer's allocations to another.

    Args:
        source: Uuid of a consumer, and what GET of it says.
        target: The same of the other one.
        minor: Microversion 1.N, at least 1.13.
    """
    (from_uuid, held), (to_uuid, receiver) = source, target
    owner = Owner(held["project_id"], held["user_id"], held.get("consumer_type", "INSTANCE"))
    return {
        to_uuid: claim(held, owner, receiver, minor),
        from_uuid: claim({"allocations": {}}, owner, held, minor),
    }


def by_provider(allocations: Any) -> dict[str, dict[str, int]]:
    """Return amounts by provider and class, whatever the version's form of the allocations."""
    if isinstance(allocations, Mapping):
        return {uuid: dict(allocation["resources"]) for uuid, allocation in allocations.items()}
    return {
        allocation["resource_provider"]["uuid"]: dict(allocation["resources"])
        for allocation in allocations
    }
