# SPDX-License-Identifier: Apache-2.0
"""The operation that applies in bulk (contract page 99, section 8)."""

from treeclaim.api.protocol.operations import Forms, Operation
from treeclaim.api.resources.extension.batches import answers, handlers, schemas
from treeclaim.api.resources.extension.listing.schemas import PATH
from treeclaim.model.microversions import ExtensionFeature

OPERATIONS = (
    Operation(
        "POST",
        PATH,
        handlers.apply_providers,
        # Whoever may do less of what the entries name is refused by the rules of their URLs.
        policy="placement:resource_providers:list",
        summary="Bring many resource providers to a state, all or none.",
        answers=(answers.APPLIED,),
        body=schemas.BATCH,
        forms=Forms(body=schemas.with_entries),
        extension=ExtensionFeature.ORDER_AND_REPORTS,
    ),
)
