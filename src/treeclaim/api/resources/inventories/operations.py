# SPDX-License-Identifier: Apache-2.0
"""The operations on inventories (contract page 30)."""

from http import HTTPStatus

from treeclaim.api.protocol.operations import EMPTY, Forms, Operation, Versioned
from treeclaim.api.protocol.request.validation import MOST_VALUES_OF_SOME
from treeclaim.api.resources.inventories import answers, handlers, schemas
from treeclaim.model.microversions import Feature

_ALL = "/resource_providers/{uuid}/inventories"
_ONE = f"{_ALL}/{{resource_class}}"

OPERATIONS = (
    Operation(
        "GET",
        _ALL,
        handlers.list_inventories,
        policy="placement:resource_providers:inventories:list",
        summary="Show all inventories of a resource provider.",
        answers=(answers.INVENTORIES,),
        checks_accept=True,
    ),
    Operation(
        "POST",
        _ALL,
        handlers.add_inventory,
        policy="placement:resource_providers:inventories:create",
        summary="Add an inventory to a resource provider.",
        answers=(answers.ADDED,),
        body=Versioned(schemas.new_inventory),
    ),
    Operation(
        "PUT",
        _ALL,
        handlers.replace_inventories,
        policy="placement:resource_providers:inventories:update",
        summary="Replace all inventories of a resource provider.",
        answers=(answers.INVENTORIES,),
        body=Versioned(schemas.all_inventories),
        most_values=MOST_VALUES_OF_SOME,
        forms=Forms(body=schemas.with_class_names),
    ),
    Operation(
        "DELETE",
        _ALL,
        handlers.delete_inventories,
        policy="placement:resource_providers:inventories:delete",
        summary="Delete all inventories of a resource provider.",
        answers=(EMPTY,),
        since=Feature.DELETE_ALL_INVENTORIES,
        gate_first=True,
        missing=HTTPStatus.METHOD_NOT_ALLOWED,
    ),
    Operation(
        "GET",
        _ONE,
        handlers.show_inventory,
        policy="placement:resource_providers:inventories:show",
        summary="Show one inventory of a resource provider.",
        answers=(answers.INVENTORY,),
        checks_accept=True,
    ),
    Operation(
        "PUT",
        _ONE,
        handlers.replace_inventory,
        policy="placement:resource_providers:inventories:update",
        summary="Replace one inventory of a resource provider.",
        answers=(answers.INVENTORY,),
        body=Versioned(schemas.changed_inventory),
    ),
    Operation(
        "DELETE",
        _ONE,
        handlers.delete_inventory,
        policy="placement:resource_providers:inventories:delete",
        summary="Delete one inventory of a resource provider.",
        answers=(EMPTY,),
    ),
)
