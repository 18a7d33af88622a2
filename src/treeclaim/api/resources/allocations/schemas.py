# SPDX-License-Identifier: Apache-2.0
"""Schemas of claims, and of answers about allocations (contract page 70)."""

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    ALTERNATIVES,
    AMOUNTS,
    BOOLEAN,
    CLASS_NAME,
    GENERATION,
    HELD,
    INTEGER,
    PROVIDER_KEY,
    SHORT_TEXT,
    STRING,
    STRINGS,
    TEXT_OR_NULL,
    UUID,
    Schema,
    mapping,
    record,
)
from treeclaim.model.extension.conditions import KEY, MOST_TOLERATED
from treeclaim.model.extension.holds import LONGEST_NOTE, MOST_PROJECTS, MOST_SOURCES
from treeclaim.model.microversions import Feature, Version

_RESOURCES = mapping(CLASS_NAME, {"type": "integer", "minimum": 1}, least=1)
_MAPPINGS: Schema = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {"[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID}},
}

TERMS: dict[str, Schema] = {
    "until": TEXT_OR_NULL,
    "returns": BOOLEAN,
    "projects": {"type": "array", "maxItems": MOST_PROJECTS, "items": SHORT_TEXT},
    "note": TEXT_OR_NULL | {"maxLength": LONGEST_NOTE},
}
"""Terms of a hold (contract page 100)."""

HOLD: Schema = record({}, TERMS | {"drawn": {"type": "object"}}) | {"type": ["object", "null"]}
"""The member that makes or changes a hold, as it is shown too."""

FROM_HOLDS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_SOURCES,
    "uniqueItems": True,
    "items": UUID,
}
"""The member that names holds to draw from."""

TOLERATES: Schema = {
    "type": "array",
    "maxItems": MOST_TOLERATED,
    "items": {"type": "string", "pattern": f"^{KEY}$"},
}
"""The member that names conditions which do not count (contract page 102, section 3)."""

KEPT_REQUEST: Schema = ALTERNATIVES | {"type": ["array", "null"]}
"""The member with the queries that a consumer was placed by."""


def claim(version: Version) -> Schema:
    """Return the schema of PUT /allocations/{consumer_uuid}."""
    least = 0 if version.has(Feature.CONSUMER_GENERATIONS) else 1
    return _claim(version, least, draws=True)


def claims(version: Version) -> Schema:
    """Return the schema of POST /allocations."""
    return mapping(PROVIDER_KEY, _claim(version, 0, draws=True), least=1)


def reshaped_claims(version: Version) -> Schema:
    """Return the schema of claims in a reshape, where there may be none (page 75)."""
    return mapping(PROVIDER_KEY, _claim(version, 0, draws=False))


def _claim(version: Version, least: int, *, draws: bool) -> Schema:
    required: dict[str, Schema] = {"allocations": _allocations(version, least)}
    if version.has(Feature.ALLOCATION_OWNERS_REQUIRED):
        required |= {"project_id": SHORT_TEXT, "user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_GENERATIONS):
        required["consumer_generation"] = {"type": ["integer", "null"]}
    if version.has(Feature.CONSUMER_TYPES):
        required["consumer_type"] = {"type": "string", "pattern": CLASS_NAME} | SHORT_TEXT
    optional = {"mappings": _MAPPINGS} if version.has(Feature.MAPPINGS) else {}
    if version.is_extended:
        # Required unless `hold` is given, which its reader checks.
        optional |= {
            "consumer_type": required.pop("consumer_type"),
            "hold": HOLD,
            "drawn_from": {"type": "object"},
            "request": KEPT_REQUEST,
            "request_valid": {"type": ["boolean", "null"]},
        }
        if draws:
            optional["from_holds"] = FROM_HOLDS
    if version.is_extended and draws:
        optional["tolerates"] = TOLERATES
    return record(required, optional)


def _allocations(version: Version, least: int) -> Schema:
    if version.has(Feature.ALLOCATIONS_BY_PROVIDER):
        share = record({"resources": _RESOURCES}, {"generation": INTEGER})
        return mapping(PROVIDER_KEY, share, least=least)
    item = record({"resource_provider": record({"uuid": UUID}), "resources": _RESOURCES})
    return {"type": "array", "minItems": least, "items": item}


SHOWN_HOLD = record(
    {
        "until": TEXT_OR_NULL,
        "returns": BOOLEAN,
        "projects": STRINGS,
        "note": TEXT_OR_NULL,
        "drawn": mapping(".*", AMOUNTS),
    }
)
"""Terms of a hold, and what is drawn from it."""

HOLD_OR_NULL = SHOWN_HOLD | {"type": ["object", "null"]}
"""Terms of a hold; null for other consumers."""

DRAWN_FROM = mapping(".*", mapping(".*", AMOUNTS))
"""The drawn amounts of a consumer, by hold and provider."""

OWNED: dict[str, Schema] = {
    "project_id": STRING,
    "user_id": STRING,
    "consumer_generation": INTEGER,
    "consumer_type": STRING,
}
"""The owner of a consumer in responses."""

KEPT: dict[str, Schema] = {
    "hold": HOLD_OR_NULL,
    "drawn_from": DRAWN_FROM,
    "request": {"type": ["array", "null"], "items": STRING},
}
"""The records kept with a consumer in responses."""

CONSUMER = Answer(
    body=record(
        {"allocations": HELD}, OWNED | KEPT | {"request_valid": {"type": ["boolean", "null"]}}
    )
)
"""The allocations of a consumer; without any, no other member is there."""

PROVIDER = Answer(
    body=record(
        {
            "allocations": mapping(
                ".*", record({"resources": AMOUNTS, "consumer_generation": INTEGER})
            )
        }
        | GENERATION
    )
)
"""The allocations at a provider."""
