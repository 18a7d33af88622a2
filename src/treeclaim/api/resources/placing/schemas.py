# SPDX-License-Identifier: Apache-2.0
"""Schemas of the bodies and answers of contract page 98, sections 3 to 5."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    ALTERNATIVES,
    AMOUNTS,
    BOOLEAN,
    CLASS_NAME,
    INTEGER,
    POSITIVE,
    ROOTS,
    SHORT_TEXT,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    UUID,
    Schema,
    mapping,
    record,
)
from treeclaim.api.resources.allocations.schemas import FROM_HOLDS, HOLD
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.planning.given import GIVEN, TOLD

_MOST_REQUESTS = 64
_MOST_DOMAINS = 1_000
_MOST_OTHERS = 1_000
_MOST_SKEW = 1_000
_MOST_QUESTIONS = 256
MOST_PARTS = 10_000
"""Domains that one answer reports."""

DOMAINS: Schema = {
    "anyOf": [
        {"enum": ["tree"]},
        {"type": "array", "minItems": 1, "maxItems": _MOST_DOMAINS, "items": UUID},
    ]
}
"""Every tree, or aggregates."""

QUESTIONS: Schema = {
    "type": "object",
    "minProperties": 1,
    "maxProperties": _MOST_QUESTIONS,
    "additionalProperties": {"type": "string"},
}
"""Queries by the names that a client gives them."""


def alternatives() -> Schema:
    """Return the schema of POST /treeclaim/candidates."""
    return record({"alternatives": ALTERNATIVES}, {"given": GIVEN})


def placements() -> Schema:
    """Return the schema of POST /treeclaim/placements."""
    required: dict[str, Schema] = {
        "alternatives": ALTERNATIVES,
        "consumers": {"type": "array", "minItems": 1, "items": UUID},
        "project_id": SHORT_TEXT,
        "user_id": SHORT_TEXT,
    }
    optional: dict[str, Schema] = {
        # Required unless `hold` is given, which its reader checks.
        "consumer_type": {"type": "string", "pattern": CLASS_NAME} | SHORT_TEXT,
        "hold": HOLD,
        "from_holds": FROM_HOLDS,
    }
    request = record(required, optional)
    return record(
        {
            "requests": {
                "type": "array",
                "minItems": 1,
                "maxItems": _MOST_REQUESTS,
                "items": request,
            }
        },
        {
            "rules": {"type": "array", "items": _rule()},
            "partial": BOOLEAN,
            "dry_run": BOOLEAN,
            "explain": BOOLEAN,
        }
        | {"given": GIVEN},
    )


def _rule() -> Schema:
    kinds: dict[str, Schema] = {
        "max_per_domain": POSITIVE,
        "max_skew": {"type": "integer", "minimum": 1, "maximum": _MOST_SKEW},
        "same_domain": {"type": "boolean", "enum": [True]},
    }
    rule = record(
        {"domains": DOMAINS},
        kinds
        | {
            "with": {"type": "array", "maxItems": _MOST_OTHERS, "items": UUID},
            "requests": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "soft": BOOLEAN,
        },
    )
    return rule | {"oneOf": [{"required": [name]} for name in kinds]}


def capacity() -> Schema:
    """Return the schema of POST /treeclaim/capacity."""
    return record(
        {"requests": QUESTIONS},
        {
            "domains": DOMAINS,
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_PARTS},
        }
        | {"given": GIVEN},
    )


_INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
_FOUND: Schema = candidates.CANDIDATES.body or {}

FOUND = Answer(
    body=_FOUND
    | {
        "properties": _FOUND["properties"]
        | {
            "alternative": _INTEGER_OR_NULL,
            "scores": {"type": "array", "items": {"type": "number"}},
            "approximate": {"type": "boolean"},
            "given": TOLD,
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
    {"explanation": candidates.EXPLANATION.body or {}, "given": TOLD},
)

PLACED = Answer(HTTPStatus.CREATED, body=_PLACED, dated=False)
"""The places of consumers."""

NOTHING_WRITTEN = Answer(HTTPStatus.OK, body=_PLACED, dated=False)
"""The places that consumers have, or would get."""

CAPACITY = Answer(
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
        {"given": TOLD},
    ),
    dated=False,
)
"""The number of consumers that fit."""
