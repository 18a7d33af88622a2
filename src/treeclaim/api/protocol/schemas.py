# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of request bodies and query strings, each a function of the microversion.

What a version changed is a branch on a `Feature` here, and nowhere a second copy of a schema.
"""

from typing import Any

from treeclaim.api.protocol.microversions import Feature, Version
from treeclaim.api.protocol.wording import Schema
from treeclaim.model.inventory import MAXIMUM_ALLOCATION_RATIO, MAXIMUM_INTEGER

UUID: Schema = {"type": "string", "format": "uuid"}
INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}
SHORT_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
CLASS_NAME = "^[A-Z0-9_]+$"
PROVIDER_KEY = "^[0-9a-fA-F-]{36}$"
CUSTOM_NAME: Schema = {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "maxLength": 255}
_DASHED_UUID: Schema = {
    "type": "string",
    "format": "uuid",
    "pattern": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
}


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


# -- providers (contract page 20) ---------------------------------------------------------


def new_provider(version: Version) -> Schema:
    """Return the schema of POST /resource_providers."""
    optional = {"uuid": UUID} | _parent(version)
    return record({"name": {"type": "string", "maxLength": 200}}, optional)


def changed_provider(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}."""
    return record({"name": {"type": "string", "maxLength": 200}}, _parent(version))


def _parent(version: Version) -> dict[str, Schema]:
    if not version.has(Feature.NESTED_PROVIDERS):
        return {}
    return {"parent_provider_uuid": {"anyOf": [UUID, {"type": "null"}]}}


def provider_query(version: Version) -> Schema:
    """Return the schema of the query of GET /resource_providers."""
    parameters = {"name": STRING, "uuid": _DASHED_UUID}
    for feature, name, schema in (
        (Feature.MEMBER_OF_FILTER, "member_of", STRING),
        (Feature.RESOURCES_FILTER, "resources", STRING),
        (Feature.NESTED_PROVIDERS, "in_tree", _DASHED_UUID),
        (Feature.REQUIRED_FILTER, "required", STRING),
    ):
        if version.has(feature):
            parameters[name] = schema
    return record({}, parameters)


# -- inventories (contract page 30) -------------------------------------------------------


def _positive(least: int = 1) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": MAXIMUM_INTEGER}


_AMOUNTS: dict[str, Schema] = {
    "reserved": _positive(0),
    "min_unit": _positive(),
    "max_unit": _positive(),
    "step_size": _positive(),
    # Below zero it is refused with the capacity that it makes; this is what the column can hold.
    "allocation_ratio": {
        "type": "number",
        "minimum": -MAXIMUM_ALLOCATION_RATIO,
        "maximum": MAXIMUM_ALLOCATION_RATIO,
    },
}
_GENERATION = {"resource_provider_generation": INTEGER}
_TOTAL = {"total": _positive()}


def new_inventory(_version: Version) -> Schema:
    """Return the schema of POST /resource_providers/{uuid}/inventories."""
    named: dict[str, Schema] = {"resource_class": {"type": "string", "pattern": CLASS_NAME}}
    return record(named | _TOTAL, _AMOUNTS | _GENERATION)


def changed_inventory(_version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    return record(_GENERATION | _TOTAL, _AMOUNTS)


def all_inventories(_version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories.

    Keys of another form are let through here: they are answered like unknown classes.
    """
    one = record(_TOTAL, _AMOUNTS | _GENERATION)
    inventories: Schema = {"type": "object", "additionalProperties": one}
    return record(_GENERATION | {"inventories": inventories})


# -- aggregates and traits (contract pages 40 and 50) -------------------------------------


def aggregates(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/aggregates."""
    uuids: Schema = {"type": "array", "items": UUID, "uniqueItems": True}
    if not version.has(Feature.AGGREGATE_GENERATION):
        return uuids
    return record({"aggregates": uuids} | _GENERATION)


def provider_traits(_version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/traits."""
    return record({"traits": {"type": "array", "items": SHORT_TEXT}} | _GENERATION)


def trait_query(_version: Version) -> Schema:
    """Return the schema of the query of GET /traits."""
    return record({}, {"name": STRING, "associated": STRING})


# -- resource classes (contract page 60) --------------------------------------------------


def resource_class(_version: Version) -> Schema:
    """Return the schema of POST /resource_classes, and of the renaming PUT."""
    return record({"name": CUSTOM_NAME})


# -- allocations (contract page 70) -------------------------------------------------------

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
        one = record({"resources": _RESOURCES}, {"generation": INTEGER})
        return mapping(PROVIDER_KEY, one, least=least)
    item = record({"resource_provider": record({"uuid": UUID}), "resources": _RESOURCES})
    return {"type": "array", "minItems": least, "items": item}


# -- reshaper (contract page 75) ----------------------------------------------------------


def reshape(version: Version) -> Schema:
    """Return the schema of POST /reshaper."""
    some = mapping(PROVIDER_KEY, _claim(version, 0))
    return record(
        {
            "inventories": mapping(PROVIDER_KEY, all_inventories(version), least=1),
            "allocations": some,
        }
    )


# -- usages (contract page 80) ------------------------------------------------------------


def usage_query(version: Version) -> Schema:
    """Return the schema of the query of GET /usages."""
    optional = {"user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_TYPES):
        pattern = "^[A-Z0-9_]+$|^all|^unknown$"
        optional["consumer_type"] = {"type": "string", "pattern": pattern} | SHORT_TEXT
    return record({"project_id": SHORT_TEXT}, optional)


# -- allocation candidates (contract page 90) ---------------------------------------------


def candidate_query(version: Version) -> Schema:
    """Return the schema of the names and scalar values of GET /allocation_candidates."""
    scalars: dict[str, Schema] = {}
    grouped = ["resources"]
    for feature, name, schema in (
        (Feature.CANDIDATE_LIMIT, "limit", {"type": "string", "pattern": "^[1-9][0-9]*$"}),
        (Feature.GRANULAR_GROUPS, "group_policy", {"type": "string", "enum": ["none", "isolate"]}),
        (Feature.ROOT_REQUIRED, "root_required", STRING),
        (Feature.SAME_SUBTREE, "same_subtree", STRING),
    ):
        if version.has(feature):
            scalars[name] = schema
    if version.extended:
        scalars |= {
            "root_member_of": STRING,
            "isolate": STRING,
            "can_split": STRING,
            "split_policy": {"type": "string", "enum": ["pack", "even"]},
        }
        grouped.append("in_subtree")
    if version.has_extension(1):
        scalars |= {"order_by": STRING, "root_in_tree": STRING}
        grouped.append("preferred")
    for feature, name in (
        (Feature.CANDIDATE_TRAITS, "required"),
        (Feature.CANDIDATE_MEMBER_OF, "member_of"),
        (Feature.CANDIDATE_IN_TREE, "in_tree"),
    ):
        if version.has(feature):
            grouped.append(name)
    if not version.has(Feature.GRANULAR_GROUPS):
        others = {name: STRING for name in grouped if name != "resources"}
        return record({"resources": STRING}, scalars | others)
    suffix = "[a-zA-Z0-9_-]{1,64}" if version.has(Feature.NAMED_GROUPS) else "[1-9][0-9]*"
    return {
        "type": "object",
        "properties": scalars,
        "patternProperties": {f"^{name}({suffix})?$": STRING for name in grouped},
        "additionalProperties": False,
    }
