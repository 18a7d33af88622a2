# SPDX-License-Identifier: Apache-2.0
"""Documents of claims: their bodies, and whether a claim was committed."""

from collections.abc import Mapping
from typing import Any


def claim_body(
    candidate: Mapping[str, Any], project_id: str, user_id: str, consumer_type: str | None
) -> dict[str, Any]:
    """Return the body of PUT /allocations/{consumer} for a candidate, without the generation."""
    amounts = amounts_by_provider(candidate["allocations"])
    body: dict[str, Any] = {
        "allocations": {uuid: {"resources": resources} for uuid, resources in amounts.items()},
        "project_id": project_id,
        "user_id": user_id,
    }
    if "mappings" in candidate:
        body["mappings"] = candidate["mappings"]
    if consumer_type is not None:
        body["consumer_type"] = consumer_type
    return body


def is_committed(body: Mapping[str, Any], present: Mapping[str, Any]) -> bool:
    """Return whether a consumer has exactly the allocations and the owner of a claim.

    Args:
        body: The body of the claim.
        present: The document of the consumer's allocations.
    """
    owner = ("project_id", "user_id")
    return all(present.get(name, body[name]) == body[name] for name in owner) and (
        amounts_by_provider(present["allocations"]) == amounts_by_provider(body["allocations"])
    )


def amounts_by_provider(allocations: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the amounts of allocations by provider and class."""
    return {uuid: dict(allocation["resources"]) for uuid, allocation in allocations.items()}
