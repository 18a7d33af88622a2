# SPDX-License-Identifier: Apache-2.0
"""The operations on totals (contract page 99, section 3)."""

from treeclaim.api.protocol.operations import Forms, Operation
from treeclaim.api.resources.extension import forms
from treeclaim.api.resources.extension.totals import answers, handlers, schemas
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "GET",
        schemas.PATH,
        handlers.show_totals,
        policy="placement:resource_providers:list",
        summary="Sum up inventories, and what is used and free of them.",
        answers=(answers.TOTALS,),
        query=schemas.QUERY,
        forms=Forms(query={name: forms.SELECTION[name] for name in ("required", "member_of")}),
        checks_accept=True,
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
)
