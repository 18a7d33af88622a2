# SPDX-License-Identifier: Apache-2.0
"""The operations on totals (contract page 99, section 3)."""

from treeclaim.api.protocol.operations import Forms, Operation, Versioned
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.api.resources.extension import forms
from treeclaim.api.resources.extension.totals import answers, handlers, schemas
from treeclaim.api.resources.planning.given import with_given
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
    Operation(
        "POST",
        schemas.PATH,
        handlers.show_given_totals,
        policy="placement:resource_providers:list",
        summary="Sum up inventories, and what would be used and free of them.",
        answers=(answers.GIVEN_TOTALS,),
        body=Versioned(schemas.given),
        query=schemas.QUERY,
        most_values=MOST_VALUES_IN_BULK,
        forms=Forms(
            query={name: forms.SELECTION[name] for name in ("required", "member_of")},
            body=with_given,
        ),
        gate_first=True,
        checks_accept=True,
        extension=ExtensionFeature.PLANNING,
        only_reads=True,
    ),
)
