# SPDX-License-Identifier: Apache-2.0
"""Parts of JSON schemas that several resources share.

A schema is a function of the microversion: a version changes it in a branch on a `Feature`, never in a second copy.
"""

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, NamedTuple

Schema = dict[str, Any]

INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}
SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 255}

UUID: Schema = {"type": "string", "format": "uuid"}
"""A UUID in any spelling (contract page 00, section 12)."""

DASHED_UUID: Schema = {
    "type": "string",
    "format": "uuid",
    "pattern": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
}
"""A UUID with dashes."""

CLASS_NAME = "^[A-Z0-9_]+$"
PROVIDER_KEY = "^[0-9a-fA-F-]{36}$"
TYPE_NAME = "^([A-Z0-9_]{1,255}|unknown)$"
"""A consumer type, or `unknown` for consumers without a type."""

CUSTOM_NAME: Schema = {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "maxLength": 255}
"""The name of a custom trait or resource class."""

GENERATION: dict[str, Schema] = {"resource_provider_generation": INTEGER}
"""The member with a provider's generation."""

MOST_NAMED = 10_000


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Return the schema of an object without additional members."""
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


Shape = Any
"""The form of a value in a response:

- `str`, `int | None` or `dict`;
- `[shape]`: a list;
- a tuple or an `Enum`: one of its values;
- `{str: shape}`, or a pattern instead of `str`: an object with such keys;
- `{"name": shape, "comment?": shape}`: an object with these members, `comment` being optional;
- `OrNull(shape)`;
- a JSON schema of an object.
"""

AMOUNTS: Shape = {str: int}
"""Amounts by resource class."""

ALLOCATIONS: Shape = {str: {"generation": int, "resources": AMOUNTS}}
"""The allocations of a consumer by provider."""

ROOTS: Shape = [{"uuid": str, "name": str}]
"""The roots of trees."""

LINKS: Shape = [{"rel": str, "href": str}]
"""Links of an entity or a page."""

_TYPES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    NoneType: "null",
}


class OrNull(NamedTuple):
    """The shape of a value that may be null."""

    shape: Shape


def to_schema(shape: Shape) -> Schema:
    """Convert a shape to a JSON schema."""
    if isinstance(shape, type) and shape in _TYPES:
        return {"type": _TYPES[shape]}
    if isinstance(shape, UnionType):
        return {"type": [_TYPES[kind] for kind in shape.__args__]}
    if isinstance(shape, OrNull):
        schema = to_schema(shape.shape)
        return schema | {"type": [schema["type"], "null"]}
    if isinstance(shape, list):
        return {"type": "array", "items": to_schema(shape[0])}
    return _object_schema(shape) if isinstance(shape, dict) else {"enum": list(shape)}


def _object_schema(shape: dict[Any, Shape]) -> Schema:
    if isinstance(shape.get("type"), str):
        return shape
    first_key, member_shape = next(iter(shape.items()))
    if first_key is str or first_key.startswith("^"):
        return mapping(".*" if first_key is str else first_key, to_schema(member_shape))
    members = {name: to_schema(member_shape) for name, member_shape in shape.items()}
    required_members = {name: schema for name, schema in members.items() if not name.endswith("?")}
    optional_members = {
        name[:-1]: schema for name, schema in members.items() if name.endswith("?")
    }
    return record(required_members, optional_members)


UUID_PATTERN = r"(urn:uuid:)?\{?(-?[0-9a-fA-F]){32}\}?"
"""Contract page 00, section 12."""


def text(pattern: str) -> Schema:
    """Return the schema of a text that matches a pattern as a whole."""
    return {"type": "string", "pattern": f"^{pattern}$"}


def list_pattern(element: str) -> str:
    """Return the pattern of elements separated by commas."""
    return f"{element}(,{element})*"


ANY_UUID: Schema = text(UUID_PATTERN) | {
    "description": "A UUID in any spelling: dashes, braces, `urn:uuid:` and case do not matter."
}
"""The format `uuid` of JSON Schema would admit only the spelling with dashes."""

MEMBER_OF: Schema = text(f"!?({UUID_PATTERN}|in:{list_pattern(UUID_PATTERN)})")
"""A value of `member_of` (contract page 90, section 1)."""

QUERY: Schema = {
    "type": "string",
    "format": "candidates-query",
    "minLength": 1,
    "description": "A query string of GET /allocation_candidates; all its parameters are allowed.",
}
"""A query in a body, for the API description."""


def transform(node: Any, change: Callable[[Schema], Any]) -> Any:
    """Return a copy of a schema after applying a function to each mapping, inner mappings first."""
    if isinstance(node, list | tuple):
        return [transform(part, change) for part in node]
    if not isinstance(node, Mapping):
        return node
    return change({key: transform(part, change) for key, part in node.items()})
