# SPDX-License-Identifier: Apache-2.0
"""Terms of holds, and sources of draws (contract page 100)."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Call
from treeclaim.api.protocol.request.bodies import (
    OR_NULL,
    Alternatives,
    Body,
    ConditionKey,
    HoldUuids,
    ShortText,
    TimeOrNull,
    list_length,
)
from treeclaim.model.claim import (
    HOLD_TYPE,
    LONGEST_NOTE,
    MOST_PROJECTS,
    HoldTerms,
    Omission,
    parse_utc,
)
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.provider import MOST_TOLERATED
from treeclaim.store.reading.holders import ConsumerDetails

MANAGE_RULE = "treeclaim:holds:manage"
"""The policy rule of writing holds, in addition to the rule of the operation."""

_AHEAD = timedelta(seconds=1)
"""Least time from the database's clock to the end of a hold or a condition."""


class TermsBody(Body):
    """Terms of a hold; a change keeps absent terms, and a new hold has their defaults."""

    until: TimeOrNull = OR_NULL
    returns: bool = False
    projects: Annotated[tuple[ShortText, ...], list_length(0, MOST_PROJECTS)] = ()
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] | None = OR_NULL


class HoldBody(TermsBody):
    """The member `hold` of writes and responses."""

    drawn: dict[str, Any] = Field(default_factory=dict)


class ClaimMembers(Body):
    """The members of the extension in a claim, which may be the response to an earlier read."""

    hold: HoldBody | None = OR_NULL
    drawn_from: dict[str, Any] = Field(default_factory=dict)
    request: Alternatives | None = OR_NULL
    request_valid: bool | None = OR_NULL
    from_holds: HoldUuids = ()
    tolerates: Annotated[tuple[ConditionKey, ...], list_length(0, MOST_TOLERATED)] = ()

    @property
    def kept_request(self) -> list[str] | Omission | None:
        """Return the queries to store; None removes the stored request."""
        if "request" not in self.model_fields_set:
            return Omission.OMITTED
        return None if self.request is None else list(self.request)


def read_hold(call: Call, body: HoldBody | None) -> HoldTerms | None:
    """Read the member `hold` of a write; None without a hold.

    Raises:
        ApiError: 400, 403.
    """
    if body is None:
        return None
    call.require_allowed(MANAGE_RULE)
    return HoldTerms(**read_terms(call, body))


def read_terms(call: Call, body: TermsBody) -> dict[str, Any]:
    """Read the present terms of a hold, by the names of `HoldTerms`; raise a 400 for an invalid end."""
    terms = body.model_dump(include=set(TermsBody.model_fields), exclude_unset=True)
    if "projects" in terms:
        terms["projects"] = tuple(dict.fromkeys(terms["projects"]))
    if terms.get("until") is not None:
        terms["until"] = read_until(call, terms["until"])
    return terms


def read_until(call: Call, value: str) -> datetime:
    """Parse an end to naive UTC in whole seconds; raise a 400 unless it is at least a second ahead."""
    end = parse_utc(value)
    if end is None:
        raise bad_request(
            f"Invalid until: {quote_value(value)} is not a time in the form of RFC 3339."
        )
    if end < call.services.store.read_clock() + _AHEAD:
        raise bad_request(
            f"Invalid until: {quote_value(value)} must be at least a second after the database's time."
        )
    return end.replace(microsecond=0)


def require_type(consumer_type: str | None, hold: HoldTerms | None) -> str:
    """Return the consumer type of a claim in the extension.

    Raises:
        ApiError: 400 for a claim without a type, or a hold with another type than `HOLD_TYPE`.
    """
    if hold is None and consumer_type is None:
        raise bad_request("JSON does not validate: 'consumer_type' is a required property")
    if hold is not None and consumer_type not in {None, HOLD_TYPE}:
        raise bad_request(f"The consumer type of a hold is {HOLD_TYPE}.")
    return consumer_type or HOLD_TYPE


def require_disjoint(
    claims: Iterable[tuple[Sequence[str], HoldTerms | None, Sequence[str]]],
) -> None:
    """Raise a 400 for a hold that draws, and for a consumer that is also a source.

    `claims` are the consumers, the terms and the sources of each claim.
    """
    claims = list(claims)
    drawn_from = {source for _, _, sources in claims for source in sources}
    for consumers, hold, sources in claims:
        if hold is not None and sources:
            raise bad_request("A hold cannot draw: 'from_holds' and 'hold' exclude each other.")
        for consumer in consumers:
            if (normalised_uuid(consumer) or consumer) in drawn_from:
                raise bad_request(f"{consumer} is a consumer of the write and in 'from_holds'.")


def render_terms(details: ConsumerDetails, uuid: str) -> dict[str, Any]:
    """Return the members `hold` and `drawn_from` of a consumer in responses."""
    hold = details.holds.get(uuid)
    return {
        "hold": None if hold is None else hold.to_document(),
        "drawn_from": details.draws.get(uuid, {}),
    }
