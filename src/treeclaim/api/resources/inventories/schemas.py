# SPDX-License-Identifier: Apache-2.0
"""Schemas of inventories (contract page 30)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from treeclaim.api.protocol.request.bodies import Body, BodyReader, Positive, ProviderUuid, items
from treeclaim.api.protocol.request.schemas import (
    CLASS_NAME,
    GENERATION,
    Schema,
    Shape,
    record,
)
from treeclaim.model.microversions import Version
from treeclaim.model.provider import (
    AMOUNTS,
    MAXIMUM_ALLOCATION_RATIO,
    MAXIMUM_INTEGER,
    MOST_CONSUMED,
    MOST_CONSUMED_UNITS,
    Consumes,
    Inventory,
)


class ConsumesBody(Body):
    """The consumption of another inventory by each unit."""

    provider: ProviderUuid
    resource_class: Annotated[str, Field(pattern=CLASS_NAME)]
    amount: Annotated[int, Field(ge=1, le=MOST_CONSUMED_UNITS)]


def _check_consumes(consumes: tuple[ConsumesBody, ...]) -> tuple[ConsumesBody, ...]:
    if len({(entry.provider, entry.resource_class) for entry in consumes}) < len(consumes):
        raise ValueError("an inventory is named twice")
    return consumes


class InventoryBody(Body):
    """An inventory; an absent member has its default.

    The schemas of page 30 are derived from its members, and this model reads the bodies.
    """

    total: Positive
    reserved: Annotated[int, Field(ge=0, le=MAXIMUM_INTEGER)] = 0
    min_unit: Positive = 1
    max_unit: Positive = MAXIMUM_INTEGER
    step_size: Positive = 1
    allocation_ratio: Annotated[
        float, Field(ge=-MAXIMUM_ALLOCATION_RATIO, le=MAXIMUM_ALLOCATION_RATIO)
    ] = 1.0
    consumes: (
        Annotated[
            tuple[ConsumesBody, ...], items(0, MOST_CONSUMED), AfterValidator(_check_consumes)
        ]
        | None
    ) = None
    resource_provider_generation: int | None = None

    def read(self) -> Inventory:
        """Return the inventory, with its consumption in the order of responses."""
        consumes = None
        if self.consumes is not None:
            entries = [(body.provider, body.resource_class, body.amount) for body in self.consumes]
            consumes = tuple(Consumes(*entry) for entry in sorted(entries))
        return Inventory(
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
            consumes,
        )


_READER = BodyReader(InventoryBody)

# These are the bounds of the column; the capacity check rejects a negative ratio.
_NUMBERS: dict[str, Schema] = {
    name: {key: _READER.schema["properties"][name][key] for key in ("type", "minimum", "maximum")}
    for name in AMOUNTS
}
"""Schemas of the amounts. Error texts show them, so the order of the keys matters."""

_TOTAL = {"total": _NUMBERS.pop("total")}


def read_inventory(body: Mapping[str, Any]) -> Inventory:
    """Read an inventory from a validated body.

    Raises:
        ApiError: 400 if `consumes` names an inventory twice.
    """
    members = {name: body[name] for name in InventoryBody.model_fields if name in body}
    inventory: InventoryBody = _READER.read(members)
    return inventory.read()


def _optional(version: Version) -> dict[str, Schema]:
    """Return the schemas of the optional members of an inventory (contract page 102, section 2)."""
    if not version.is_extended:
        return _NUMBERS
    return _NUMBERS | {"consumes": _READER.schema["properties"]["consumes"]}


def new_inventory(version: Version) -> Schema:
    """Return the schema of POST /resource_providers/{uuid}/inventories."""
    named: dict[str, Schema] = {"resource_class": {"type": "string", "pattern": CLASS_NAME}}
    return record(named | _TOTAL, _optional(version) | GENERATION)


def changed_inventory(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories/{resource_class}."""
    return record(GENERATION | _TOTAL, _optional(version))


def all_inventories(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories.

    Keys of any form are valid here; malformed ones are answered as unknown classes.
    """
    inventory = record(_TOTAL, _optional(version) | GENERATION)
    inventories: Schema = {"type": "object", "additionalProperties": inventory}
    return record(GENERATION | {"inventories": inventories})


def with_class_names(schema: Schema) -> Schema:
    """Add the form of class names to a copy of the schema of all inventories."""
    schema["properties"]["inventories"]["propertyNames"] = {"pattern": CLASS_NAME}
    return schema


FIELDS: Shape = {
    **dict.fromkeys(AMOUNTS, int),
    "allocation_ratio": float,
    "consumes?": [{"provider": str, "resource_class": str, "amount": int}],
}
"""An inventory in answers; its consumption in those of the extension."""

INVENTORY: Shape = FIELDS | {"resource_provider_generation": int}

INVENTORIES: Shape = {"resource_provider_generation": int, "inventories": {str: FIELDS}}
