# SPDX-License-Identifier: Apache-2.0
"""Schemas of inventories (contract page 30)."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import Answer
from treeclaim.api.protocol.request.schemas import (
    CLASS_NAME,
    GENERATION,
    INTEGER,
    STRING,
    UUID,
    Schema,
    mapping,
    record,
)
from treeclaim.model.inventory import (
    MAXIMUM_ALLOCATION_RATIO,
    MAXIMUM_INTEGER,
    MOST_CONSUMED,
    MOST_CONSUMED_UNITS,
)
from treeclaim.model.microversions import Version


def _integer(least: int = 1) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": MAXIMUM_INTEGER}


_AMOUNTS: dict[str, Schema] = {
    "reserved": _integer(0),
    "min_unit": _integer(),
    "max_unit": _integer(),
    "step_size": _integer(),
    # Below zero it is refused with the capacity that it makes; this is what the column can hold.
    "allocation_ratio": {
        "type": "number",
        "minimum": -MAXIMUM_ALLOCATION_RATIO,
        "maximum": MAXIMUM_ALLOCATION_RATIO,
    },
}
_TOTAL = {"total": _integer()}
_CONSUMES: Schema = {
    "type": "array",
    "maxItems": MOST_CONSUMED,
    "items": record(
        {
            "provider": UUID,
            "resource_class": {"type": "string", "pattern": CLASS_NAME},
            "amount": {"type": "integer", "minimum": 1, "maximum": MOST_CONSUMED_UNITS},
        }
    ),
}


def _fields(version: Version) -> dict[str, Schema]:
    """Return what may be left out of an inventory (contract page 102, section 2)."""
    knows = version.is_extended
    return _AMOUNTS | ({"consumes": _CONSUMES} if knows else {})


def new_inventory(version: Version) -> Schema:
    """Return the schema of POST /resource_providers/{uuid}/inventories."""
    named: dict[str, Schema] = {"resource_class": {"type": "string", "pattern": CLASS_NAME}}
    return record(named | _TOTAL, _fields(version) | GENERATION)


def changed_inventory(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    return record(GENERATION | _TOTAL, _fields(version))


def all_inventories(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories.

    Keys of another form are let through here: they are answered like unknown classes.
    """
    inventory = record(_TOTAL, _fields(version) | GENERATION)
    inventories: Schema = {"type": "object", "additionalProperties": inventory}
    return record(GENERATION | {"inventories": inventories})


def with_class_names(schema: Schema) -> Schema:
    """Say in a copy of the schema of all inventories which keys clients should send."""
    schema["properties"]["inventories"]["propertyNames"] = {"pattern": CLASS_NAME}
    return schema


_FIELDS: dict[str, Schema] = {
    **dict.fromkeys(("total", "reserved", "min_unit", "max_unit", "step_size"), INTEGER),
    "allocation_ratio": {"type": "number"},
}
CONSUMED: dict[str, Schema] = {
    "consumes": {
        "type": "array",
        "items": record({"provider": STRING, "resource_class": STRING, "amount": INTEGER}),
    }
}
"""The consumption of an inventory, which the extension shows."""

FIELDS = record(_FIELDS, CONSUMED)
"""Fields of an inventory."""

_INVENTORY = record(_FIELDS | GENERATION, CONSUMED)

INVENTORY = Answer(body=_INVENTORY)
"""An inventory."""

ADDED = Answer(HTTPStatus.CREATED, _INVENTORY, located=True)
"""An inventory that was added."""

INVENTORIES = Answer(body=record(GENERATION | {"inventories": mapping(".*", FIELDS)}))
"""All inventories of a provider."""
