# SPDX-License-Identifier: Apache-2.0
"""Parts of JSON schemas that several nouns share.

The modules of the nouns contain the schemas, each a function of the microversion: a change by a version is a branch
on a `Feature`, never a second copy of a schema.
"""

from typing import Any

Schema = dict[str, Any]

INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
STRING: Schema = {"type": "string"}
STRINGS: Schema = {"type": "array", "items": STRING}
SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}

UUID: Schema = {"type": "string", "format": "uuid"}
"""A UUID in any spelling (contract page 00, section 12)."""

DASHED_UUID: Schema = {
    "type": "string",
    "format": "uuid",
    "pattern": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
}
"""A UUID with dashes, which some filters require."""

CLASS_NAME = "^[A-Z0-9_]+$"
PROVIDER_KEY = "^[0-9a-fA-F-]{36}$"
TYPE_NAME = "^([A-Z0-9_]{1,255}|unknown)$"
"""A consumer type, or the word for consumers without a type."""

CUSTOM_NAME: Schema = {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "maxLength": 255}
"""The name of a custom trait or resource class."""

GENERATION: dict[str, Schema] = {"resource_provider_generation": INTEGER}
"""The member with a provider's generation."""

MOST_NAMED = 10_000


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Return the schema of an object with exactly these members."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def mapping(pattern: str, value: Schema, *, least: int = 0) -> Schema:
    """Return the schema of an object whose keys match a pattern."""
    schema: dict[str, Any] = {
        "type": "object",
        "patternProperties": {pattern: value},
        "additionalProperties": False,
    }
    if least:
        schema["minProperties"] = least
    return schema


AMOUNTS: Schema = mapping(".*", INTEGER)
"""Amounts by resource class, in answers."""

HELD: Schema = mapping(".*", record({"generation": INTEGER, "resources": AMOUNTS}))
"""The allocations of a consumer by provider, in answers."""

ROOTS: Schema = {"type": "array", "items": record({"uuid": STRING, "name": STRING})}
"""The roots of trees, in answers."""

LINKS: Schema = {"type": "array", "items": record({"rel": STRING, "href": STRING})}
"""Links of a representation, in answers."""


UUID_PATTERN = r"(urn:uuid:)?\{?(-?[0-9a-fA-F]){32}\}?"
"""Contract page 00, section 12."""


def text(pattern: str) -> Schema:
    """Return the schema of a text that matches a pattern as a whole."""
    return {"type": "string", "pattern": f"^{pattern}$"}


def list_pattern(element: str) -> str:
    """Return the pattern of elements separated by commas."""
    return f"{element}(,{element})*"


ANY_UUID: Schema = text(UUID_PATTERN) | {
    "description": "A uuid in any spelling: dashes, braces, `urn:uuid:` and case do not matter."
}
"""JSON Schema's own format admits only the spelling with dashes."""

MEMBER_OF: Schema = text(f"!?({UUID_PATTERN}|in:{list_pattern(UUID_PATTERN)})")
"""A value of `member_of` (contract page 90, section 1)."""

QUERY: Schema = {
    "type": "string",
    "format": "candidates-query",
    "minLength": 1,
    "description": "A query string of GET /allocation_candidates; all its parameters are allowed.",
}
"""A query in a body, as the API description shows it."""
