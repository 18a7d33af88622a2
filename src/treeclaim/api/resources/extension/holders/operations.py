# SPDX-License-Identifier: Apache-2.0
"""The operations on allocations in bulk (contract page 99, section 2)."""

from treeclaim.api.protocol.operations import Forms, Operation
from treeclaim.api.resources.extension import forms
from treeclaim.api.resources.extension.holders import answers, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "GET",
        schemas.PATH,
        handlers.list_allocations_in_bulk,
        policy="placement:allocations:list",
        summary="List consumers in bulk, with all that they hold.",
        answers=(answers.CONSUMERS,),
        query=schemas.QUERY,
        forms=Forms(query={"member_of": forms.SELECTION["member_of"]}),
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
)
