# SPDX-License-Identifier: Apache-2.0
"""The operation that watches (contract page 99, section 4)."""

from http import HTTPStatus

from treeclaim.api.protocol.negotiation.accept import EVENT_STREAM, JSON
from treeclaim.api.protocol.operations import Operation
from treeclaim.api.resources.extension.changes import answers, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "GET",
        schemas.PATH,
        handlers.list_changes,
        policy="placement:resource_providers:list",
        summary="List what changed since a cursor, or watch what changes.",
        answers=(answers.CHANGES,),
        query=schemas.QUERY,
        checks_accept=True,
        errors=frozenset({HTTPStatus.GONE}),
        offers=(JSON, EVENT_STREAM),
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
)
