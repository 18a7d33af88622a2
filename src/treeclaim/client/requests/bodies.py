# SPDX-License-Identifier: Apache-2.0
"""Bodies that write allocations (contract page 70)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOBODY = "00000000-0000-0000-0000-000000000000"
"""Project and user of claims without a known owner."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of allocations.

    Attributes:
        project_id, user_id: Ids.
        consumer_type: Such as INSTANCE; None for a consumer without a type.
    """

    project_id: str
    user_id: str
    consumer_type: str | None


def claim(
    candidate: Mapping[str, Any], owner: Owner, present: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of PUT /allocations/{consumer}.

    Args:
        candidate: An allocation request.
        owner: The owner in the claim; without a consumer type for a microversion before 1.38.
        present: The response to GET of the consumer.
    """
    amounts = by_provider(candidate["allocations"])
    body = {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "project_id": owner.project_id,
        "user_id": owner.user_id,
        "consumer_generation": present.get("consumer_generation"),
    }
    if "mappings" in candidate:
        body["mappings"] = candidate["mappings"]
    if owner.consumer_type is not None:
        body["consumer_type"] = owner.consumer_type
    return body


def is_claimed(candidate: Mapping[str, Any], owner: Owner, present: Mapping[str, Any]) -> bool:
    """Return whether a consumer has exactly the allocations and the owner of a claim.

    Args:
        candidate: An allocation request.
        owner: The owner in the claim.
        present: The response to GET of the consumer.
    """
    is_owned = all(
        present.get(name, value) == value
        for name, value in (("project_id", owner.project_id), ("user_id", owner.user_id))
    )
    return is_owned and by_provider(present["allocations"]) == by_provider(
        candidate["allocations"]
    )


def move(
    source: tuple[str, Mapping[str, Any]], target: tuple[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the body of POST /allocations that gives one consumer's allocations to another.

    Args:
        source: Uuid of a consumer, and what GET of it says.
        target: The same of the other one.
    """
    (from_uuid, held), (to_uuid, receiver) = source, target
    owner = Owner(held["project_id"], held["user_id"], held.get("consumer_type", "INSTANCE"))
    return {
        to_uuid: claim(held, owner, receiver),
        from_uuid: claim({"allocations": {}}, owner, held),
    }


def by_provider(allocations: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return amounts by provider and class."""
    return {uuid: dict(allocation["resources"]) for uuid, allocation in allocations.items()}
