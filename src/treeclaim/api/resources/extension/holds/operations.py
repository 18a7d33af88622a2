# SPDX-License-Identifier: Apache-2.0
"""The operations on holds (contract page 100)."""

from treeclaim.api.protocol.operations import Forms, Operation, Versioned
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.api.resources.candidates.body_forms import QUERIES
from treeclaim.api.resources.extension.holds import answers, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "GET",
        schemas.PATH,
        handlers.list_holds,
        policy="treeclaim:holds:list",
        summary="List holds, with what they hold and what is drawn from them.",
        answers=(answers.HOLDS,),
        query=schemas.QUERY,
        forms=Forms(query={"until_before": {"type": "string", "format": "date-time"}}),
        checks_accept=True,
        extension=ExtensionFeature.HOLDS,
    ),
    Operation(
        "POST",
        schemas.PATH,
        handlers.change_holds,
        policy="treeclaim:holds:manage",
        summary="Change terms of holds, and no generation.",
        answers=(answers.UPDATED,),
        body=Versioned(schemas.changed),
        most_values=MOST_VALUES_IN_BULK,
        forms=QUERIES,
        gate_first=True,
        extension=ExtensionFeature.HOLDS,
    ),
    Operation(
        "POST",
        "/treeclaim/requests",
        handlers.keep_requests,
        policy="treeclaim:requests:update",
        summary="Keep the requests that consumers were placed by.",
        answers=(answers.UPDATED,),
        body=Versioned(schemas.kept),
        most_values=MOST_VALUES_IN_BULK,
        forms=QUERIES,
        gate_first=True,
        extension=ExtensionFeature.HOLDS,
    ),
)
