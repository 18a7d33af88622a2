# SPDX-License-Identifier: Apache-2.0
"""Claims that may be attempted again after their answer was lost."""

from collections.abc import Callable, Mapping
from typing import Any

from treeclaim.client.errors import ClientError, ConsumerExistsError
from treeclaim.client.retry import is_outcome_unknown
from treeclaim.model.microversions import MAXIMUM, Feature


class Claim:
    """A claim of a consumer; each attempt reads its allocations first."""

    def __init__(
        self,
        consumer: str,
        body: Mapping[str, Any],
        get: Callable[[str], Any],
        call: Callable[..., Any],
    ) -> None:
        """Describe the claim.

        Args:
            consumer: UUID of the consumer.
            body: Of PUT /allocations/{consumer}, without the generation; without a consumer type, the
                consumer gets none, and the claim has nothing of the extension.
            get: `Client.get`.
            call: `Client.call`.
        """
        self._consumer = consumer
        self._path = f"/allocations/{consumer}"
        self._body = body
        self._get = get
        self._call = call
        self._may_be_committed = False

    def attempt(self, *, replace: bool) -> None:
        """Claim, unless an earlier attempt was committed.

        Raises:
            ConsumerExistsError: if the consumer has allocations, and `replace` is false.
            ClientError: if the claim fails.
        """
        present = self._get(self._path)
        if self._may_be_committed and self._is_committed(present):
            return
        if present["allocations"] and not replace:
            raise ConsumerExistsError(self._consumer, present)
        body = {**self._body, "consumer_generation": present.get("consumer_generation")}
        is_typed = "consumer_type" in body
        minor = MAXIMUM.minor if is_typed else Feature.CONSUMER_TYPES - 1
        try:
            self._call("PUT", self._path, body, extended=is_typed, minor=minor)
        except ClientError as error:
            self._may_be_committed |= is_outcome_unknown(error)
            raise

    def _is_committed(self, present: Mapping[str, Any]) -> bool:
        """Return whether the consumer has exactly the allocations and the owner of the claim."""
        return all(
            present.get(name, self._body[name]) == self._body[name]
            for name in ("project_id", "user_id")
        ) and amounts_by_provider(present["allocations"]) == amounts_by_provider(
            self._body["allocations"]
        )


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


def amounts_by_provider(allocations: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the amounts of allocations by provider and class."""
    return {uuid: dict(allocation["resources"]) for uuid, allocation in allocations.items()}
