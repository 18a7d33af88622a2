# SPDX-License-Identifier: Apache-2.0
"""The operations on allocations (contract page 70)."""

from treeclaim.api.protocol.operations import EMPTY, Forms, Operation, Versioned
from treeclaim.api.protocol.request.patterns import ANY_UUID
from treeclaim.api.protocol.request.validation import MOST_VALUES_OF_SOME
from treeclaim.api.resources.allocations import answers, handlers, schemas
from treeclaim.api.resources.candidates.body_forms import QUERIES, described
from treeclaim.model.microversions import Feature

_CONSUMER = "/allocations/{consumer_uuid}"

OPERATIONS = (
    Operation(
        "GET",
        _CONSUMER,
        handlers.show_allocations,
        policy="placement:allocations:list",
        summary="Show what a consumer holds.",
        answers=(answers.CONSUMER,),
        checks_accept=True,
    ),
    Operation(
        "PUT",
        _CONSUMER,
        handlers.replace_allocations,
        policy="placement:allocations:update",
        summary="Replace what a consumer holds.",
        answers=(EMPTY,),
        body=Versioned(schemas.claim),
        most_values=MOST_VALUES_OF_SOME,
        forms=Forms(path={"consumer_uuid": ANY_UUID}, body=described),
    ),
    Operation(
        "DELETE",
        _CONSUMER,
        handlers.delete_allocations,
        policy="placement:allocations:delete",
        summary="Remove all that a consumer holds.",
        answers=(EMPTY,),
    ),
    Operation(
        "POST",
        "/allocations",
        handlers.manage_allocations,
        policy="placement:allocations:manage",
        summary="Replace what several consumers hold, all or nothing.",
        answers=(EMPTY,),
        since=Feature.MANAGE_ALLOCATIONS,
        gate_first=True,
        body=Versioned(schemas.claims),
        most_values=MOST_VALUES_OF_SOME,
        forms=QUERIES,
    ),
    Operation(
        "GET",
        "/resource_providers/{uuid}/allocations",
        handlers.list_provider_allocations,
        policy="placement:resource_providers:allocations:list",
        summary="Show what consumers hold on a resource provider.",
        answers=(answers.PROVIDER,),
        checks_accept=True,
    ),
)
