# SPDX-License-Identifier: Apache-2.0
"""Schemas of claims (contract page 70)."""

from treeclaim.api.protocol.request.schemas import (
    CLASS_NAME,
    INTEGER,
    PROVIDER_KEY,
    SHORT_TEXT,
    UUID,
    mapping,
    record,
)
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Feature, Version

_RESOURCES = mapping(CLASS_NAME, {"type": "integer", "minimum": 1}, least=1)
_MAPPINGS: Schema = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {"[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID}},
}


def claim(version: Version) -> Schema:
    """Return the schema of PUT /allocations/{consumer_uuid}."""
    least = 0 if version.has(Feature.CONSUMER_GENERATIONS) else 1
    return _claim(version, least)


def claims(version: Version) -> Schema:
    """Return the schema of POST /allocations."""
    return mapping(PROVIDER_KEY, _claim(version, 0), least=1)


def reshaped_claims(version: Version) -> Schema:
    """Return the schema of claims in a reshape, where there may be none (page 75)."""
    return mapping(PROVIDER_KEY, _claim(version, 0))


def _claim(version: Version, least: int) -> Schema:
    required: dict[str, Schema] = {"allocations": _allocations(version, least)}
    if version.has(Feature.ALLOCATION_OWNERS_REQUIRED):
        required |= {"project_id": SHORT_TEXT, "user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_GENERATIONS):
        required["consumer_generation"] = {"type": ["integer", "null"]}
    if version.has(Feature.CONSUMER_TYPES):
        required["consumer_type"] = {"type": "string", "pattern": CLASS_NAME} | SHORT_TEXT
    optional = {"mappings": _MAPPINGS} if version.has(Feature.MAPPINGS) else {}
    return record(required, optional)


def _allocations(version: Version, least: int) -> Schema:
    if version.has(Feature.ALLOCATIONS_BY_PROVIDER):
        share = record({"resources": _RESOURCES}, {"generation": INTEGER})
        return mapping(PROVIDER_KEY, share, least=least)
    item = record({"resource_provider": record({"uuid": UUID}), "resources": _RESOURCES})
    return {"type": "array", "minItems": least, "items": item}
