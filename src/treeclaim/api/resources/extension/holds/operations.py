# SPDX-License-Identifier: Apache-2.0
"""The operations on holds (contract page 100)."""

from treeclaim.api.protocol.operations import Operation
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
        checks_accept=True,
        extension=ExtensionFeature.HOLDS,
    ),
)
