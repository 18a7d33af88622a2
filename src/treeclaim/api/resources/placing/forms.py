# SPDX-License-Identifier: Apache-2.0
"""Forms of the bodies of contract page 98, for the API description."""

from treeclaim.api.protocol.operations import Forms
from treeclaim.api.protocol.request.patterns import ANY_UUID, text
from treeclaim.api.protocol.request.wording import Schema

_QUERY: Schema = text("resources=[A-Z0-9_]{1,64}:[1-9][0-9]{0,8}") | {
    "description": "A query string of GET /allocation_candidates; all its parameters are allowed."
}


def _described(schema: Schema) -> Schema:
    """Return a schema in which queries and uuids are described as such."""
    if schema.get("format") == "uuid":
        return ANY_UUID
    if schema == {"type": "string"}:
        return _QUERY
    described = dict(schema)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            described[name] = _described(schema[name])
    if "anyOf" in schema:
        described["anyOf"] = [_described(choice) for choice in schema["anyOf"]]
    if "properties" in schema:
        described["properties"] = {
            name: _described(value) for name, value in schema["properties"].items()
        }
    return described


QUERIES = Forms(body=_described)
"""Of bodies with queries in them."""
