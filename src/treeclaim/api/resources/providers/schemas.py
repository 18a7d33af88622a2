# SPDX-License-Identifier: Apache-2.0
"""Schemas of resource providers (contract page 20)."""

from treeclaim.api.protocol.operations import Answer, Versioned
from treeclaim.api.protocol.request.schemas import (
    DASHED_UUID,
    INTEGER,
    LINKS,
    MEMBER_OF,
    STRING,
    TEXT_OR_NULL,
    UUID,
    listed,
    record,
    text,
)
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.microversions import Feature, Version

_NAME: dict[str, Schema] = {"name": {"type": "string", "maxLength": 200}}


def new_provider(version: Version) -> Schema:
    """Return the schema of POST /resource_providers."""
    return record(_NAME, {"uuid": UUID} | _parent(version))


def changed_provider(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}."""
    return record(_NAME, _parent(version))


def _parent(version: Version) -> dict[str, Schema]:
    if not version.has(Feature.NESTED_PROVIDERS):
        return {}
    return {"parent_provider_uuid": {"anyOf": [UUID, {"type": "null"}]}}


def with_name(schema: Schema) -> Schema:
    """Say in a copy of the schema of a new provider that its name is not empty.

    The handler refuses an empty name itself. (A provider that is there may lose its name.)
    """
    schema["properties"]["name"]["minLength"] = 1
    return schema


def provider_query(version: Version) -> Schema:
    """Return the schema of the query of GET /resource_providers."""
    parameters = {"name": STRING, "uuid": DASHED_UUID}
    for feature, name, schema in (
        (Feature.MEMBER_OF_FILTER, "member_of", STRING),
        (Feature.RESOURCES_FILTER, "resources", STRING),
        (Feature.NESTED_PROVIDERS, "in_tree", DASHED_UUID),
        (Feature.REQUIRED_FILTER, "required", STRING),
    ):
        if version.has(feature):
            parameters[name] = schema
    return record({}, parameters)


QUERY = Versioned(provider_query)
"""The query of GET /resource_providers."""


_PROVIDER = record(
    {
        "uuid": STRING,
        "name": STRING,
        "generation": INTEGER,
        "links": LINKS,
        "parent_provider_uuid": TEXT_OR_NULL,
        "root_provider_uuid": STRING,
    }
)

PROVIDER = Answer(body=_PROVIDER)
"""A provider."""

CREATED = Answer(body=_PROVIDER, located=True)
"""A provider that was created."""

PROVIDERS = Answer(body=record({"resource_providers": {"type": "array", "items": _PROVIDER}}))
"""A list of providers."""


_BLANK = r"\s\x00-\x1f\x7f-\x9f"
"""What may be stripped from an element of a list: regular expressions differ about blanks."""

_TRAIT = f"[^!,{_BLANK}]([^,]*[^,{_BLANK}])?"
_SIGNED_TRAITS = f"(?!in:)!*{_TRAIT}(,!*{_TRAIT})*"

FILTER_FORMS: dict[str, Schema] = {
    "resources": text(listed("[^:,]*:[1-9][0-9]*")),
    "required": text(f"(in:{listed(_TRAIT)}|{_SIGNED_TRAITS})"),
    "member_of": MEMBER_OF,
}
"""Names of any form are accepted here: whether a name exists is not checked if the other filters
leave no provider."""
