# SPDX-License-Identifier: Apache-2.0
"""The operations on providers in bulk (contract page 99, section 1)."""

from treeclaim.api.protocol.operations import Forms, Operation
from treeclaim.api.resources.extension import forms
from treeclaim.api.resources.extension.listing import answers, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "GET",
        schemas.PATH,
        handlers.list_providers_in_bulk,
        policy="placement:resource_providers:list",
        summary="List resource providers in bulk, with all that belongs to them.",
        answers=(answers.PROVIDERS,),
        query=schemas.QUERY,
        forms=Forms(query=forms.SELECTION),
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
)
