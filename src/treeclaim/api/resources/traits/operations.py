# SPDX-License-Identifier: Apache-2.0
"""The operations on traits (contract page 50)."""

from treeclaim.api.protocol.operations import EMPTY, Forms, Operation, Versioned
from treeclaim.api.protocol.request.patterns import text
from treeclaim.api.protocol.request.schemas import CUSTOM_NAME
from treeclaim.api.resources.traits import answers, handlers, schemas
from treeclaim.model.microversions import Feature

_OF_PROVIDER = "/resource_providers/{uuid}/traits"

OPERATIONS = (
    Operation(
        "GET",
        "/traits",
        handlers.list_traits,
        policy="placement:traits:list",
        summary="List traits.",
        answers=(answers.TRAITS,),
        since=Feature.TRAITS,
        gate_first=True,
        query=schemas.QUERY,
        forms=Forms(
            query={
                "name": {"type": "string", "pattern": ":"},
                "associated": text("([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])"),
            }
        ),
        checks_accept=True,
    ),
    Operation(
        "GET",
        "/traits/{name}",
        handlers.show_trait,
        policy="placement:traits:show",
        summary="Tell whether a trait exists.",
        answers=(answers.FOUND,),
        since=Feature.TRAITS,
        gate_first=True,
    ),
    Operation(
        "PUT",
        "/traits/{name}",
        handlers.ensure_trait,
        policy="placement:traits:update",
        summary="Create a custom trait if it does not exist.",
        forms=Forms(path={"name": CUSTOM_NAME}),
        answers=(answers.CREATED, answers.EXISTED),
        since=Feature.TRAITS,
        gate_first=True,
    ),
    Operation(
        "DELETE",
        "/traits/{name}",
        handlers.delete_trait,
        policy="placement:traits:delete",
        summary="Delete a custom trait.",
        answers=(EMPTY,),
        since=Feature.TRAITS,
        gate_first=True,
    ),
    Operation(
        "GET",
        _OF_PROVIDER,
        handlers.list_provider_traits,
        policy="placement:resource_providers:traits:list",
        summary="Show the traits of a resource provider.",
        answers=(answers.PROVIDER_TRAITS,),
        since=Feature.TRAITS,
        gate_first=True,
        checks_accept=True,
    ),
    Operation(
        "PUT",
        _OF_PROVIDER,
        handlers.replace_provider_traits,
        policy="placement:resource_providers:traits:update",
        summary="Replace the traits of a resource provider.",
        answers=(answers.PROVIDER_TRAITS,),
        since=Feature.TRAITS,
        gate_first=True,
        body=Versioned(schemas.provider_traits),
    ),
    Operation(
        "DELETE",
        _OF_PROVIDER,
        handlers.clear_provider_traits,
        policy="placement:resource_providers:traits:delete",
        summary="Remove all traits of a resource provider.",
        answers=(EMPTY,),
        since=Feature.TRAITS,
        gate_first=True,
    ),
)
