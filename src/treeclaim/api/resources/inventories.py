# SPDX-License-Identifier: Apache-2.0
"""Inventories: /resource_providers/{uuid}/inventories (contract page 30)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from treeclaim.api.protocol.errors import CONCURRENT_UPDATE
from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    Refusal,
    Reply,
    ValueForms,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request.bodies import (
    Body,
    BodyReader,
    Positive,
    ProviderUuid,
    list_length,
)
from treeclaim.api.protocol.request.schemas import CLASS_NAME, GENERATION, Schema, Shape, record
from treeclaim.api.resources.providers.provider_json import (
    make_provider_path,
    read_provider_body,
    require_row,
)
from treeclaim.model.errors import (
    CapacityTooSmallError,
    InventoryExistsError,
    InventoryInUseError,
    InventoryNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.parts import INVENTORIES
from treeclaim.model.provider import (
    AMOUNTS,
    MAXIMUM_ALLOCATION_RATIO,
    MAXIMUM_INTEGER,
    MOST_CONSUMED,
    MOST_CONSUMED_UNITS,
    Consumption,
    Inventory,
)
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.operations.providers.part_writer import (
    GenerationRule,
    InventoryScope,
    WriteRules,
)
from treeclaim.store.reading.inventories import load_consumed_inventories


class ConsumesBody(Body):
    """The consumption of another inventory by each unit."""

    provider: ProviderUuid
    resource_class: Annotated[str, Field(pattern=CLASS_NAME)]
    amount: Annotated[int, Field(ge=1, le=MOST_CONSUMED_UNITS)]


def _check_consumes(entries: tuple[ConsumesBody, ...]) -> tuple[ConsumesBody, ...]:
    if len({(entry.provider, entry.resource_class) for entry in entries}) < len(entries):
        raise ValueError("an inventory is named twice")
    return entries


class InventoryBody(Body):
    """An inventory; the schemas of page 30 are derived from this model."""

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
            tuple[ConsumesBody, ...],
            list_length(0, MOST_CONSUMED),
            AfterValidator(_check_consumes),
        ]
        | None
    ) = None
    resource_provider_generation: int | None = None

    def read(self) -> Inventory:
        """Return the inventory, with sorted consumption."""
        consumption = None
        if self.consumes is not None:
            entries = [(body.provider, body.resource_class, body.amount) for body in self.consumes]
            consumption = tuple(Consumption(*entry) for entry in sorted(entries))
        return Inventory(
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
            consumption,
        )


_READER = BodyReader(InventoryBody)

# The ratio has the bounds of its column; the capacity check rejects a negative ratio.
_NUMBERS: dict[str, Schema] = {
    name: {key: _READER.schema["properties"][name][key] for key in ("type", "minimum", "maximum")}
    for name in AMOUNTS
}
"""Schemas of the amounts; the order of the keys appears in error texts."""

_TOTAL = {"total": _NUMBERS.pop("total")}


def read_inventory(body: Mapping[str, Any]) -> Inventory:
    """Read an inventory from a validated body.

    Raises:
        ApiError: 400 if `consumes` names an inventory twice.
    """
    members = {name: body[name] for name in InventoryBody.model_fields if name in body}
    inventory: InventoryBody = _READER.read(members)
    return inventory.read()


def _make_optional_members(version: Version) -> dict[str, Schema]:
    """Return the optional members of an inventory (contract page 102, section 2)."""
    if not version.is_extended:
        return _NUMBERS
    return _NUMBERS | {"consumes": _READER.schema["properties"]["consumes"]}


def _make_new_inventory_schema(version: Version) -> Schema:
    class_member: dict[str, Schema] = {"resource_class": {"type": "string", "pattern": CLASS_NAME}}
    return record(class_member | _TOTAL, _make_optional_members(version) | GENERATION)


def _make_changed_inventory_schema(version: Version) -> Schema:
    return record(GENERATION | _TOTAL, _make_optional_members(version))


def make_inventories_schema(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/inventories.

    Its keys may have any form: the store rejects a malformed name as an unknown class.
    """
    inventory = record(_TOTAL, _make_optional_members(version) | GENERATION)
    inventories: Schema = {"type": "object", "additionalProperties": inventory}
    return record(GENERATION | {"inventories": inventories})


def describe_class_names(schema: Schema) -> Schema:
    """Add the form of class names to the described schema of all inventories."""
    schema["properties"]["inventories"]["propertyNames"] = {"pattern": CLASS_NAME}
    return schema


INVENTORY: Shape = {
    **dict.fromkeys(AMOUNTS, int),
    "allocation_ratio": float,
    "consumes?": [{"provider": str, "resource_class": str, "amount": int}],
}
"""An inventory in responses; `consumes` belongs to the extension."""

SHOWN_INVENTORY: Shape = INVENTORY | {"resource_provider_generation": int}

SHOWN_INVENTORIES: Shape = {"resource_provider_generation": int, "inventories": {str: INVENTORY}}


_GENERATION = "resource_provider_generation"

_CAPACITY_REFUSED = Refusal(
    "Unable to update inventory for resource provider {uuid}: {error}", CapacityTooSmallError
)


def _make_document(
    call: Call, inventory: Inventory, consumption: Sequence[Consumption]
) -> dict[str, Any]:
    if not call.version.is_extended:
        return inventory.amounts
    return inventory.amounts | {"consumes": [entry.document for entry in consumption]}


def _make_written_documents(
    call: Call, inventories: Mapping[str, Inventory]
) -> dict[str, dict[str, Any]]:
    """Return written inventories by class; a write without `consumes` keeps the stored consumption."""
    stored_consumption: Mapping[str, Sequence[Consumption]] = {}
    if call.version.is_extended and any(
        inventory.consumes is None for inventory in inventories.values()
    ):
        stored_consumption = call.services.store.read(
            load_consumed_inventories, call.arguments["uuid"]
        )
    documents = {}
    for name, inventory in inventories.items():
        consumption = (
            stored_consumption.get(name, ()) if inventory.consumes is None else inventory.consumes
        )
        documents[name] = _make_document(call, inventory, consumption)
    return documents


@operation(
    "GET /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:list",
    shows=SHOWN_INVENTORIES,
)
def list_inventories(call: Call) -> Reply:
    """Show all inventories of a resource provider (section 2)."""
    with call.services.replica.borrow_forest() as forest:
        row = require_row(forest, call.arguments["uuid"])
        generation = forest.provider(row).generation
        entries = forest.inventories(row)
    return Reply(
        body={
            _GENERATION: generation,
            "inventories": {
                entry.resource_class: _make_document(call, entry.inventory, entry.consumes)
                for entry in entries
            },
        },
        modified_at=max((entry.modified_at for entry in entries), default=None),
    )


@operation(
    "POST /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:create",
    shows=SHOWN_INVENTORY,
    status=HTTPStatus.CREATED,
    has_location=True,
    body=VersionedSchema(_make_new_inventory_schema),
    refusals=(
        Refusal(
            "Unable to create inventory for resource provider {uuid}: {error}",
            CapacityTooSmallError,
            ResourceClassNotFoundError,
            status=HTTPStatus.BAD_REQUEST,
        ),
        Refusal("Update conflict: {error}", InventoryExistsError),
    ),
)
def add_inventory(call: Call) -> Reply:
    """Add an inventory to a resource provider (section 3)."""
    provider_uuid = call.arguments["uuid"]
    body = read_provider_body(call)
    inventory, resource_class = read_inventory(body), body["resource_class"]
    generation = _write(call, {resource_class: inventory}, InventoryScope.MISSING)
    return Reply(
        body=_make_document(call, inventory, inventory.consumes or ()) | {_GENERATION: generation},
        location=f"{make_provider_path(provider_uuid)}/inventories/{resource_class}",
    )


@operation(
    "PUT /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:update",
    shows=SHOWN_INVENTORIES,
    body=VersionedSchema(make_inventories_schema),
    forms=ValueForms(body=describe_class_names),
    refusals=(
        _CAPACITY_REFUSED,
        Refusal(
            "Unknown resource class in inventory for resource provider {uuid}: {error}",
            ResourceClassNotFoundError,
            status=HTTPStatus.BAD_REQUEST,
        ),
        Refusal("update conflict: {error}", InventoryInUseError),
    ),
)
def replace_inventories(call: Call) -> Answer:
    """Replace all inventories of a resource provider (section 4)."""
    body = read_provider_body(call)
    items = call.deadline.each(body["inventories"].items())
    inventories = {name: read_inventory(inventory) for name, inventory in items}
    generation = _write(call, inventories, InventoryScope.ALL, int(body[_GENERATION]))
    return {_GENERATION: generation, "inventories": _make_written_documents(call, inventories)}


@operation(
    "DELETE /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:delete",
    since=Feature.DELETE_ALL_INVENTORIES,
    missing_status=HTTPStatus.METHOD_NOT_ALLOWED,
)
def delete_inventories(call: Call) -> None:
    """Delete all inventories of a resource provider (section 5)."""
    _write(call, {}, InventoryScope.ALL)


@operation(
    "GET /resource_providers/{uuid}/inventories/{resource_class}",
    policy="placement:resource_providers:inventories:show",
    shows=SHOWN_INVENTORY,
)
def show_inventory(call: Call) -> Reply:
    """Show one inventory of a resource provider (section 6)."""
    provider_uuid, resource_class = call.arguments["uuid"], call.arguments["resource_class"]
    with call.services.replica.borrow_forest() as forest:
        row = require_row(forest, provider_uuid)
        generation = forest.provider(row).generation
        entries = {entry.resource_class: entry for entry in forest.inventories(row)}
    if resource_class not in entries:
        raise InventoryNotFoundError(provider_uuid, resource_class)
    entry = entries[resource_class]
    return Reply(
        body=_make_document(call, entry.inventory, entry.consumes) | {_GENERATION: generation},
        modified_at=entry.modified_at,
    )


@operation(
    "PUT /resource_providers/{uuid}/inventories/{resource_class}",
    policy="placement:resource_providers:inventories:update",
    shows=SHOWN_INVENTORY,
    body=VersionedSchema(_make_changed_inventory_schema),
    refusals=(
        _CAPACITY_REFUSED,
        Refusal(
            "No inventory record with resource class for resource provider {uuid}: "
            "No inventory of class {resource_class} found.",
            InventoryNotFoundError,
            status=HTTPStatus.BAD_REQUEST,
        ),
    ),
)
def replace_inventory(call: Call) -> Answer:
    """Replace one inventory of a resource provider (section 7)."""
    resource_class = call.arguments["resource_class"]
    body = read_provider_body(call)
    inventories = {resource_class: read_inventory(body)}
    generation = _write(call, inventories, InventoryScope.PRESENT, int(body[_GENERATION]))
    return _make_written_documents(call, inventories)[resource_class] | {_GENERATION: generation}


@operation(
    "DELETE /resource_providers/{uuid}/inventories/{resource_class}",
    policy="placement:resource_providers:inventories:delete",
    refusals=(
        Refusal(
            "No inventory of class {resource_class} found for delete",
            InventoryNotFoundError,
            ResourceClassNotFoundError,
        ),
        Refusal(
            "Unable to delete inventory of class {resource_class}: {error}",
            InventoryInUseError,
            code=CONCURRENT_UPDATE,
        ),
    ),
)
def delete_inventory(call: Call) -> None:
    """Delete one inventory of a resource provider (section 8)."""
    _write(call, {call.arguments["resource_class"]: None}, InventoryScope.PRESENT)


def _write(
    call: Call,
    inventories: Mapping[str, Inventory | None],
    scope: InventoryScope,
    generation: int | None = None,
) -> int:
    """Write the inventories of a provider, or delete those that are None; return the provider's generation."""
    least_capacity = 0 if call.has(Feature.ZERO_CAPACITY) else 1
    rules = WriteRules(GenerationRule.ALWAYS, least_capacity, scope, rewrites_equal=True)
    written_provider = call.services.store.write(
        write_part, call.arguments["uuid"], INVENTORIES, inventories, generation, rules=rules
    )
    return written_provider.generation
