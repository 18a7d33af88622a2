# SPDX-License-Identifier: Apache-2.0
"""Forms of bodies with queries in them, for the API description (contract pages 98 and 100)."""

from treeclaim.api.protocol.operations import Forms
from treeclaim.api.protocol.request.patterns import ANY_UUID, text
from treeclaim.api.protocol.request.schemas import TEXT_OR_NULL
from treeclaim.api.protocol.request.wording import Schema

_QUERY: Schema = text("resources=[A-Z0-9_]{1,64}:[1-9][0-9]{0,8}") | {
    "description": "A query string of GET /allocation_candidates; all its parameters are allowed."
}


def described(schema: Schema) -> Schema:
    """Return a schema in which queries, uuids, and times are described as such."""
    if schema.get("format") == "uuid":
        return ANY_UUID
    if schema == {"type": "string"}:
        return _QUERY
    found = dict(schema)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            found[name] = described(schema[name])
    if "anyOf" in schema:
        found["anyOf"] = [described(choice) for choice in schema["anyOf"]]
    for name in ("properties", "patternProperties"):
        if name in schema:
            found[name] = {key: described(value) for key, value in schema[name].items()}
    members = schema.get("properties", {})
    if "until" in members:
        found["properties"]["until"] = TEXT_OR_NULL | {"format": "date-time"}
    return found


QUERIES = Forms(body=described)
"""Of bodies with queries in them."""
