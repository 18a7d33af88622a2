# SPDX-License-Identifier: Apache-2.0
"""Terms of holds, and the holds that a write draws from (contract page 100)."""

from collections.abc import Iterable, Mapping, Sequence
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
    items,
)
from treeclaim.api.resources.candidates.operations import DRAW_RULE
from treeclaim.model.claim import (
    HOLD_TYPE,
    LONGEST_NOTE,
    MOST_PROJECTS,
    HoldTerms,
    Omission,
    utc_of,
)
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.model.provider import MOST_TOLERATED
from treeclaim.store.reading.holders import ConsumerDetails

MANAGE_RULE = "treeclaim:holds:manage"
"""The rule that a write of a hold needs, beside the rule of its operation."""

_AHEAD = timedelta(seconds=1)
"""The time by which the end of a hold or a condition must be ahead of the database's clock."""


class TermsBody(Body):
    """Terms of a hold; those that are absent keep their values, or have their defaults."""

    until: TimeOrNull = OR_NULL
    returns: bool = False
    projects: Annotated[tuple[ShortText, ...], items(0, MOST_PROJECTS)] = ()
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] | None = OR_NULL

    @property
    def terms(self) -> dict[str, Any]:
        """Return the members that are there."""
        return self.model_dump(exclude_unset=True)


class HoldBody(TermsBody):
    """The member that makes a hold, as it is shown too."""

    drawn: dict[str, Any] = Field(default_factory=dict)


class ClaimMembers(Body):
    """The members that the extension adds to the claim of a consumer, in writes and in responses."""

    hold: HoldBody | None = OR_NULL
    drawn_from: dict[str, Any] = Field(default_factory=dict)
    request: Alternatives | None = OR_NULL
    request_valid: bool | None = OR_NULL
    from_holds: HoldUuids = ()
    tolerates: Annotated[tuple[ConditionKey, ...], items(0, MOST_TOLERATED)] = ()

    @property
    def kept_request(self) -> list[str] | Omission | None:
        """Return the queries to be kept; None for none from now on."""
        if "request" not in self.model_fields_set:
            return Omission.OMITTED
        return None if self.request is None else list(self.request)


def hold_of(call: Call, body: HoldBody | None) -> HoldTerms | None:
    """Read the member `hold` of a write; None where it makes none.

    Raises:
        ApiError: 400, 403.
    """
    if body is None:
        return None
    call.require_allowed(MANAGE_RULE)
    return HoldTerms(**terms_of(call, body.terms))


def terms_of(call: Call, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read those terms of a hold that are named, by the names of `HoldTerms`.

    Raises:
        ApiError: 400.
    """
    terms = {name: given[name] for name in ("until", "returns", "note") if name in given}
    if "projects" in given:
        terms["projects"] = tuple(dict.fromkeys(given["projects"]))
    if terms.get("until") is not None:
        terms["until"] = until_of(call, terms["until"])
    return terms


def until_of(call: Call, given: str) -> datetime:
    """Read when something ends: naive UTC in whole seconds, at least a second ahead.

    Raises:
        ApiError: 400.
    """
    until = utc_of(given)
    if until is None:
        raise bad_request(
            f"Invalid until: {quote_value(given)} is not a time in the form of RFC 3339."
        )
    if until < call.services.store.now() + _AHEAD:
        raise bad_request(
            f"Invalid until: {quote_value(given)} is not a second ahead by the database's clock."
        )
    return until.replace(microsecond=0)


def type_of(consumer_type: str | None, hold: HoldTerms | None) -> str:
    """Return the consumer type of a claim at a version that knows holds; None where it names none.

    Raises:
        ApiError: 400 if it is missing, or another one than that of holds for a hold.
    """
    if hold is None and consumer_type is None:
        raise bad_request("JSON does not validate: 'consumer_type' is a required property")
    if hold is not None and consumer_type not in {None, HOLD_TYPE}:
        raise bad_request(f"The consumer type of a hold is {HOLD_TYPE}.")
    return consumer_type or HOLD_TYPE


def sources_of(call: Call, holds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the holds that a write draws from, if its caller may draw.

    Raises:
        ApiError: 403.
    """
    if holds:
        call.require_allowed(DRAW_RULE)
    return holds


def require_apart(claims: Iterable[tuple[Sequence[str], HoldTerms | None, Sequence[str]]]) -> None:
    """Check that no hold draws, and none is a consumer of the write that draws from it.

    Args:
        claims: Consumers, terms and sources of each.

    Raises:
        ApiError: 400.
    """
    claims = list(claims)
    drawn_from = {source for _, _, sources in claims for source in sources}
    for consumers, hold, sources in claims:
        if hold is not None and sources:
            raise bad_request("A hold cannot draw: 'from_holds' was given together with 'hold'.")
        for consumer in consumers:
            if (normalised_uuid(consumer) or consumer) in drawn_from:
                raise bad_request(
                    f"{consumer} is both a consumer of the write and in 'from_holds'."
                )


def shown(kept: ConsumerDetails, uuid: str) -> dict[str, Any]:
    """Return the members by which a client sees a hold, and who draws from one."""
    hold = kept.holds.get(uuid)
    return {
        "hold": None if hold is None else hold.shown(),
        "drawn_from": kept.drawn.get(uuid, {}),
    }
