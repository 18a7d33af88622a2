# SPDX-License-Identifier: Apache-2.0
"""Turns the schemas that check values into the forms of the API description."""

import re
from collections.abc import Mapping
from typing import Any

from treeclaim.api.protocol.operations import Operation
from treeclaim.api.protocol.request.schemas import ANY_UUID, text
from treeclaim.api.protocol.request.wording import Schema

SEGMENT: Schema = text("[^/]+")
"""A segment of a path, which has no other form (contract page 00, section 1)."""

_ANY_KEY = ".*"

_SUFFIXED = (
    "With a suffix, as in `{name}_COMPUTE`, it is of a request group of its own; a suffix is up to "
    "64 letters, digits, dashes and underscores."
)
"""What is said of a parameter of a request group."""


def path_form(operation: Operation, name: str) -> Schema:
    """Return the form of a variable of an operation's path."""
    return operation.forms.path.get(name, SEGMENT)


def query_form(operation: Operation, name: str, checked_by: Schema) -> Schema:
    """Return the form of a parameter: its schema, unless the operation declares a closer form."""
    form: Schema = operation.forms.query.get(name) or described(checked_by)
    if name in operation.forms.repeated_query:
        return {"type": "array", "minItems": 1, "items": form}
    return form


def told(operation: Operation, name: str, *, is_suffixed: bool) -> str:
    """Return what is said of a parameter: its line of help, and that it may have a suffix."""
    line = operation.forms.help.get(name, "")
    sentence = f"{line[0].upper()}{line[1:]}." if line else ""
    return " ".join(filter(None, (sentence, _SUFFIXED.format(name=name) * is_suffixed)))


def body_form(operation: Operation, checked_by: Schema) -> Schema:
    """Return the form of an operation's body."""
    form: Schema = described(checked_by)
    closer = form if operation.forms.body is None else operation.forms.body(form)
    return keyed(closer)  # type: ignore[no-any-return]


def described(schema: Any) -> Any:
    """Return a copy of a schema in which `format` is not stricter than the service."""
    if isinstance(schema, Mapping):
        if schema.get("format") == "uuid" and "pattern" not in schema:
            return dict(ANY_UUID)
        return {name: described(inner) for name, inner in schema.items()}
    if isinstance(schema, list):
        return [described(inner) for inner in schema]
    return schema


def keyed(schema: Any) -> Any:
    """Return a copy of a schema in the words that makers of clients know.

    What follows from `patternProperties` they leave out, so that a mapping would have no members.
    """
    if isinstance(schema, list | tuple):
        return [keyed(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: keyed(inner) for name, inner in schema.items()}
    patterns = found.get("patternProperties", {})
    if len(patterns) != 1 or found.get("additionalProperties", True) is not False:
        return found
    [(pattern, value)] = found.pop("patternProperties").items()
    names = {} if pattern == _ANY_KEY else {"propertyNames": {"pattern": pattern}}
    return found | names | {"additionalProperties": value}


def suffixed_names(schema: Schema) -> dict[str, Schema]:
    """Return the parameters of a query that may have a suffix, by their plain names."""
    patterns: dict[str, Schema] = schema.get("patternProperties", {})
    found = ((re.match(r"\^(\w+)\(", key), value) for key, value in patterns.items())
    return {match[1]: value for match, value in found if match is not None}
