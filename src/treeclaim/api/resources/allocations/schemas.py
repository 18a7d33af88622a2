# SPDX-License-Identifier: Apache-2.0
"""Schemas of claims, and of answers about allocations (contract page 70)."""

from typing import Any

from treeclaim.api.protocol.operations import DescribedResponse
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.protocol.request.schemas import (
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
from treeclaim.api.resources.allocations.hold_terms import ClaimMembers
from treeclaim.api.resources.candidates.schemas import TYPE_UNLESS_HOLD
from treeclaim.model.microversions import Feature, Version

_RESOURCES = mapping(CLASS_NAME, {"type": "integer", "minimum": 1}, least=1)
_MAPPINGS: Schema = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {"[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID}},
}

MEMBERS = BodyReader(ClaimMembers)
"""Reads the members of the extension, which the schemas of claims let through."""

_DRAWING = ("from_holds", "tolerates")
"""Members that no claim of a reshape has."""


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
            **{name: {} for name in ClaimMembers.model_fields if draws or name not in _DRAWING},
        }
    return record(required, optional)


def described_claims(node: Any) -> Any:
    """Return a copy of a schema in which the members of the extension are described."""
    if not isinstance(node, dict):
        return node
    copied = {key: described_claims(part) for key, part in node.items()}
    members = copied.get("properties", {})
    if "hold" in members:
        described_members = MEMBERS.schema["properties"]
        copied["properties"] = members | {
            name: described_members[name] for name in members.keys() & described_members.keys()
        }
        copied |= TYPE_UNLESS_HOLD
    return copied


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

CONSUMER = DescribedResponse(
    body=record(
        {"allocations": HELD}, OWNED | KEPT | {"request_valid": {"type": ["boolean", "null"]}}
    )
)
"""The allocations of a consumer; without any, no other member is there."""

PROVIDER = DescribedResponse(
    body=record(
        {
            "allocations": mapping(
                ".*", record({"resources": AMOUNTS, "consumer_generation": INTEGER})
            )
        }
        | GENERATION
    )
)
