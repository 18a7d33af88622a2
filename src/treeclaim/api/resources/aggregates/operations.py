# SPDX-License-Identifier: Apache-2.0
"""The operations on aggregates (contract page 40)."""

from treeclaim.api.protocol.operations import Operation, Versioned
from treeclaim.api.resources.aggregates import answers, handlers, schemas
from treeclaim.model.microversions import Feature

_PATH = "/resource_providers/{uuid}/aggregates"

OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        handlers.list_aggregates,
        policy="placement:resource_providers:aggregates:list",
        summary="Show the aggregates of a resource provider.",
        answers=(answers.AGGREGATES,),
        since=Feature.AGGREGATES,
        checks_accept=True,
    ),
    Operation(
        "PUT",
        _PATH,
        handlers.replace_aggregates,
        policy="placement:resource_providers:aggregates:update",
        summary="Replace the aggregates of a resource provider.",
        answers=(answers.AGGREGATES,),
        since=Feature.AGGREGATES,
        body=Versioned(schemas.aggregates),
    ),
)
