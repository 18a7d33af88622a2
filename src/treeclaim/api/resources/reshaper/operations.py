# SPDX-License-Identifier: Apache-2.0
"""The operation that reshapes (contract page 75)."""

from treeclaim.api.protocol.operations import EMPTY, Forms, Operation, Versioned
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.resources.candidates.body_forms import described
from treeclaim.api.resources.inventories.schemas import with_class_names
from treeclaim.api.resources.reshaper import handlers, schemas
from treeclaim.model.microversions import Feature


def _described_body(schema: Schema) -> Schema:
    for provider in schema["properties"]["inventories"]["patternProperties"].values():
        with_class_names(provider)
    return described(schema)


OPERATIONS = (
    Operation(
        "POST",
        "/reshaper",
        handlers.reshape,
        policy="placement:reshaper:reshape",
        summary="Replace inventories and claims in one step.",
        answers=(EMPTY,),
        since=Feature.RESHAPER,
        gate_first=True,
        body=Versioned(schemas.reshape),
        forms=Forms(body=_described_body),
    ),
)
