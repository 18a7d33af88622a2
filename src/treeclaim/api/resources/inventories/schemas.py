# SPDX-License-Identifier: Apache-2.0
"""Schemas of inventories (contract page 30)."""

from treeclaim.api.protocol.request.schemas import CLASS_NAME, GENERATION, record
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.model.inventory import MAXIMUM_ALLOCATION_RATIO, MAXIMUM_INTEGER
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


def new_inventory(_version: Version) -> Schema:
    """Return the schema of POST /resource_providers/{uuid}/inventories."""
    named: dict[str, Schema] = {"resource_class": {"type": "string", "pattern": CLASS_NAME}}
    return record(named | _TOTAL, _AMOUNTS | GENERATION)


def changed_inventory(_version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    return record(GENERATION | _TOTAL, _AMOUNTS)


def all_inventories(_version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories.

    Keys of another form are let through here: they are answered like unknown classes.
    """
    inventory = record(_TOTAL, _AMOUNTS | GENERATION)
    inventories: Schema = {"type": "object", "additionalProperties": inventory}
    return record(GENERATION | {"inventories": inventories})


def with_class_names(schema: Schema) -> Schema:
    """Say in a copy of the schema of all inventories which keys clients should send."""
    schema["properties"]["inventories"]["propertyNames"] = {"pattern": CLASS_NAME}
    return schema
