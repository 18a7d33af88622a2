# SPDX-License-Identifier: Apache-2.0
"""/resource_providers/{uuid}/inventories (contract page 30)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

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
from treeclaim.api.resources.inventories import schemas
from treeclaim.api.resources.providers.provider_json import (
    json_for_provider,
    provider_path,
    require_row,
)
from treeclaim.model.errors import (
    CapacityTooSmallError,
    InventoryExistsError,
    InventoryInUseError,
    InventoryNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.microversions import Feature
from treeclaim.model.parts import INVENTORIES
from treeclaim.model.provider import Consumes, Inventory
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.operations.providers.part_writer import Classes, Raises, WriteRules
from treeclaim.store.reading.inventories import consumed_by

_GENERATION = "resource_provider_generation"

_CAPACITY_REFUSED = Refusal(
    "Unable to update inventory for resource provider {uuid}: {error}", CapacityTooSmallError
)


def inventory_document(
    call: Call, inventory: Inventory, consumes: Sequence[Consumes] | None = None
) -> dict[str, Any]:
    """Return the document of an inventory at the call's version.

    Args:
        call: The call.
        inventory: The inventory.
        consumes: Its consumption; by default that of `inventory`.
    """
    if not call.version.is_extended:
        return inventory.amounts
    shown_consumes = inventory.consumes or () if consumes is None else consumes
    return inventory.amounts | {"consumes": [entry.document for entry in shown_consumes]}


def _kept_consumption(
    call: Call, inventories: Mapping[str, Inventory]
) -> Mapping[str, Sequence[Consumes]]:
    """Return the consumption of inventories after a write, by class; empty at versions that do not show it."""
    if not call.version.is_extended:
        return {}
    written = {name: inventories[name].consumes for name in inventories}
    stored_consumption: Mapping[str, Sequence[Consumes]] = {}
    if any(consumes is None for consumes in written.values()):
        stored_consumption = call.services.store.read(consumed_by, call.arguments["uuid"])
    return {
        name: stored_consumption.get(name, ()) if consumes is None else consumes
        for name, consumes in written.items()
    }


@operation(
    "GET /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:list",
    shows=schemas.INVENTORIES,
)
def list_inventories(call: Call) -> Reply:
    """Show all inventories of a resource provider (section 2)."""
    with call.services.replica.current() as forest:
        row = require_row(forest, call.arguments["uuid"])
        generation = forest.provider(row).generation
        entries = forest.inventories(row)
    return Reply(
        body={
            _GENERATION: generation,
            "inventories": {
                entry.resource_class: inventory_document(call, entry.inventory, entry.consumes)
                for entry in entries
            },
        },
        modified_at=max((entry.modified_at for entry in entries), default=None),
    )


@operation(
    "POST /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:create",
    shows=schemas.INVENTORY,
    status=HTTPStatus.CREATED,
    located=True,
    body=VersionedSchema(schemas.new_inventory),
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
    body = json_for_provider(call)
    inventory, resource_class = schemas.read_inventory(body), body["resource_class"]
    generation = _write(call, {resource_class: inventory}, Classes.MISSING)
    return Reply(
        body=inventory_document(call, inventory) | {_GENERATION: generation},
        location=f"{provider_path(provider_uuid)}/inventories/{resource_class}",
    )


@operation(
    "PUT /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:update",
    shows=schemas.INVENTORIES,
    body=VersionedSchema(schemas.all_inventories),
    forms=ValueForms(body=schemas.with_class_names),
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
    body = json_for_provider(call)
    items = call.deadline.each(body["inventories"].items())
    inventories = {name: schemas.read_inventory(inventory) for name, inventory in items}
    generation = _write(call, inventories, Classes.ALL, int(body[_GENERATION]))
    consumption = _kept_consumption(call, inventories)
    return {
        _GENERATION: generation,
        "inventories": {
            name: inventory_document(call, inventory, consumption.get(name))
            for name, inventory in inventories.items()
        },
    }


@operation(
    "DELETE /resource_providers/{uuid}/inventories",
    policy="placement:resource_providers:inventories:delete",
    since=Feature.DELETE_ALL_INVENTORIES,
    missing=HTTPStatus.METHOD_NOT_ALLOWED,
)
def delete_inventories(call: Call) -> None:
    """Delete all inventories of a resource provider (section 5)."""
    _write(call, {}, Classes.ALL)


@operation(
    "GET /resource_providers/{uuid}/inventories/{resource_class}",
    policy="placement:resource_providers:inventories:show",
    shows=schemas.INVENTORY,
)
def show_inventory(call: Call) -> Reply:
    """Show one inventory of a resource provider (section 6)."""
    provider_uuid, resource_class = call.arguments["uuid"], call.arguments["resource_class"]
    with call.services.replica.current() as forest:
        row = require_row(forest, provider_uuid)
        generation = forest.provider(row).generation
        entries = {entry.resource_class: entry for entry in forest.inventories(row)}
    if resource_class not in entries:
        raise InventoryNotFoundError(provider_uuid, resource_class)
    entry = entries[resource_class]
    return Reply(
        body=inventory_document(call, entry.inventory, entry.consumes) | {_GENERATION: generation},
        modified_at=entry.modified_at,
    )


@operation(
    "PUT /resource_providers/{uuid}/inventories/{resource_class}",
    policy="placement:resource_providers:inventories:update",
    shows=schemas.INVENTORY,
    body=VersionedSchema(schemas.changed_inventory),
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
    body = json_for_provider(call)
    inventory = schemas.read_inventory(body)
    generation = _write(call, {resource_class: inventory}, Classes.PRESENT, int(body[_GENERATION]))
    consumption = _kept_consumption(call, {resource_class: inventory}).get(resource_class)
    return inventory_document(call, inventory, consumption) | {_GENERATION: generation}


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
    _write(call, {call.arguments["resource_class"]: None}, Classes.PRESENT)


def _write(
    call: Call,
    inventories: Mapping[str, Inventory | None],
    classes: Classes,
    generation: int | None = None,
) -> int:
    """Write inventories of the provider of a call, or delete those that are None; return its generation."""
    least_capacity = 0 if call.has(Feature.ZERO_CAPACITY) else 1
    rules = WriteRules(Raises.ALWAYS, least_capacity, classes, rewrites_equal=True)
    written = call.services.store.write(
        write_part, call.arguments["uuid"], INVENTORIES, inventories, generation, rules=rules
    )
    return written.generation
