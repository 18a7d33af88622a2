# SPDX-License-Identifier: Apache-2.0
"""The operations on resource classes (contract page 60)."""

from treeclaim.api.protocol.operations import EMPTY, Forms, Operation, Versioned
from treeclaim.api.protocol.request.schemas import CUSTOM_NAME
from treeclaim.api.resources.classes import answers, handlers, schemas
from treeclaim.model.microversions import Feature

_CLASS = "/resource_classes/{name}"

OPERATIONS = (
    Operation(
        "GET",
        "/resource_classes",
        handlers.list_classes,
        policy="placement:resource_classes:list",
        summary="List resource classes.",
        answers=(answers.CLASSES,),
        since=Feature.RESOURCE_CLASSES,
        gate_first=True,
        checks_accept=True,
    ),
    Operation(
        "POST",
        "/resource_classes",
        handlers.create_class,
        policy="placement:resource_classes:create",
        summary="Create a custom resource class.",
        answers=(answers.CREATED,),
        since=Feature.RESOURCE_CLASSES,
        gate_first=True,
        body=Versioned(schemas.resource_class),
    ),
    Operation(
        "GET",
        _CLASS,
        handlers.show_class,
        policy="placement:resource_classes:show",
        summary="Show a resource class.",
        answers=(answers.CLASS,),
        since=Feature.RESOURCE_CLASSES,
        gate_first=True,
        checks_accept=True,
    ),
    Operation(
        "PUT",
        _CLASS,
        handlers.put_class,
        policy="placement:resource_classes:update",
        summary="Create a custom resource class if it does not exist (below 1.7: rename it).",
        answers=(answers.CREATED, answers.EXISTED),
        since=Feature.RESOURCE_CLASSES,
        gate_first=True,
        body=Versioned(schemas.resource_class),
        forms=Forms(path={"name": CUSTOM_NAME}),
        body_until=Feature.ENSURE_RESOURCE_CLASS,
    ),
    Operation(
        "DELETE",
        _CLASS,
        handlers.delete_class,
        policy="placement:resource_classes:delete",
        summary="Delete a custom resource class.",
        answers=(EMPTY,),
        since=Feature.RESOURCE_CLASSES,
        gate_first=True,
    ),
)
