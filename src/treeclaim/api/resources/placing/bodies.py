# SPDX-License-Identifier: Apache-2.0
"""Bodies and responses of contract page 98, sections 3 to 5."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from treeclaim.api.protocol.operations import DescribedResponse
from treeclaim.api.protocol.request.bodies import (
    OR_NULL,
    Alternatives,
    Body,
    ConsumerUuid,
    Domains,
    HoldUuids,
    Parts,
    Positive,
    Query,
    ShortText,
    items,
)
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    BOOLEAN,
    CLASS_NAME,
    INTEGER,
    ROOTS,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    Schema,
    mapping,
    record,
)
from treeclaim.api.resources.allocations.hold_terms import HoldBody
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.candidates.schemas import TYPE_UNLESS_HOLD
from treeclaim.api.resources.planning.assumptions import ASSUMED, QuestionBody

_MOST_REQUESTS = 64
_MOST_OTHERS = 1_000
_MOST_SKEW = 1_000
_KINDS = ("max_per_domain", "max_skew", "same_domain")

NamedQueries = Annotated[dict[str, Query], Field(min_length=1, max_length=256)]
"""Queries by the names that a client gives them."""


class AlternativesBody(QuestionBody):
    """Queries, of which the first that has a candidate counts."""

    alternatives: Alternatives


class PlacementRequest(Body):
    """Consumers that are placed by the same queries."""

    model_config = ConfigDict(json_schema_extra=TYPE_UNLESS_HOLD)

    alternatives: Alternatives
    consumers: Annotated[tuple[ConsumerUuid, ...], items(1)]
    project_id: ShortText
    user_id: ShortText
    consumer_type: Annotated[ShortText, Field(pattern=CLASS_NAME)] | None = None
    hold: HoldBody | None = OR_NULL
    from_holds: HoldUuids = ()


class PlacementRule(Body):
    """A rule between placements, of one kind."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [kind]} for kind in _KINDS]}
    )

    domains: Domains
    max_per_domain: Positive | None = None
    max_skew: Annotated[int, Field(ge=1, le=_MOST_SKEW)] | None = None
    same_domain: Literal[True] | None = None
    others: Annotated[tuple[ConsumerUuid, ...], items(0, _MOST_OTHERS)] = Field((), alias="with")
    requests: Annotated[frozenset[Annotated[int, Field(ge=0)]], Field(strict=False)] | None = None
    soft: bool = False

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, value: Any) -> Any:
        if isinstance(value, dict) and sum(kind in value for kind in _KINDS) != 1:
            raise ValueError("one of 'max_per_domain', 'max_skew' and 'same_domain' is required")
        return value


class PlacementsBody(QuestionBody):
    """Consumers that are placed, and the rules between them."""

    requests: Annotated[tuple[PlacementRequest, ...], items(1, _MOST_REQUESTS)]
    rules: Annotated[tuple[PlacementRule, ...], items()] = ()
    partial: bool = False
    dry_run: bool = False
    explain: bool = False


class CapacityBody(QuestionBody):
    """Queries of consumers that are counted."""

    requests: NamedQueries
    domains: Domains | None = None
    limit: Parts = 1_000


_INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
_FOUND: Schema = candidates.CANDIDATES.body or {}

FOUND = DescribedResponse(
    body=_FOUND
    | {
        "properties": _FOUND["properties"]
        | {
            "alternative": _INTEGER_OR_NULL,
            "scores": {"type": "array", "items": {"type": "number"}},
            "approximate": {"type": "boolean"},
            "given": ASSUMED,
        },
        "required": ["alternative", *_FOUND["required"]],
    }
)
"""The candidates of the first query that has any."""

_PLACED = record(
    {
        "placements": {
            "type": "array",
            "items": record(
                {
                    "consumer": STRING,
                    "alternative": INTEGER,
                    "root_providers": ROOTS,
                    "allocations": mapping(".*", record({"resources": AMOUNTS})),
                    "mappings": {"type": ["object", "null"]},
                    "dropped": {"type": "array", "items": INTEGER},
                    "consumer_generation": _INTEGER_OR_NULL,
                },
                {"approximate": {"type": "boolean"}},
            ),
        },
        "unplaced": STRINGS,
    },
    {"explanation": candidates.EXPLANATION.body or {}, "given": ASSUMED},
)

PLACED = DescribedResponse(HTTPStatus.CREATED, body=_PLACED, dated=False)
NOTHING_WRITTEN = DescribedResponse(HTTPStatus.OK, body=_PLACED, dated=False)
"""The places that consumers have, or would get."""

CAPACITY = DescribedResponse(
    body=record(
        {
            "capacity": mapping(
                ".*",
                record(
                    {
                        "fits": INTEGER,
                        "at_most": {"type": ["integer", "null"]},
                        "when_empty": INTEGER,
                        "complete": BOOLEAN,
                    },
                    {
                        "domains": {
                            "type": "array",
                            "items": record(
                                {"uuid": STRING, "name": TEXT_OR_NULL, "fits": INTEGER}
                            ),
                        }
                    },
                ),
            )
        },
        {"given": ASSUMED},
    ),
    dated=False,
)
