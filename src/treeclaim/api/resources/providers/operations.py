# SPDX-License-Identifier: Apache-2.0
"""The operations on resource providers (contract page 20)."""

from treeclaim.api.protocol.operations import EMPTY, Forms, Operation, Versioned
from treeclaim.api.resources.providers import answers, forms, handlers, schemas

OPERATIONS = (
    Operation(
        "GET",
        "/resource_providers",
        handlers.list_providers,
        policy="placement:resource_providers:list",
        summary="List resource providers.",
        answers=(answers.PROVIDERS,),
        query=schemas.QUERY,
        forms=Forms(query=forms.QUERY),
        checks_accept=True,
    ),
    Operation(
        "POST",
        "/resource_providers",
        handlers.create_provider,
        policy="placement:resource_providers:create",
        summary="Create a resource provider.",
        answers=(answers.CREATED,),
        body=Versioned(schemas.new_provider),
        forms=Forms(body=schemas.with_name),
    ),
    Operation(
        "GET",
        "/resource_providers/{uuid}",
        handlers.show_provider,
        policy="placement:resource_providers:show",
        summary="Show a resource provider.",
        answers=(answers.PROVIDER,),
        checks_accept=True,
    ),
    Operation(
        "PUT",
        "/resource_providers/{uuid}",
        handlers.update_provider,
        policy="placement:resource_providers:update",
        summary="Rename or move a resource provider.",
        answers=(answers.PROVIDER,),
        body=Versioned(schemas.changed_provider),
    ),
    Operation(
        "DELETE",
        "/resource_providers/{uuid}",
        handlers.delete_provider,
        policy="placement:resource_providers:delete",
        summary="Delete a resource provider.",
        answers=(EMPTY,),
    ),
)
