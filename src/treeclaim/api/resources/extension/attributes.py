# SPDX-License-Identifier: Apache-2.0
"""Attributes of a provider (contract page 102, section 1)."""

from treeclaim.api.protocol.operations import Answer, Call, operation, shows
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.resources.extension.provider_batch import SHOWN, AttributesBody
from treeclaim.api.resources.providers.provider_json import (
    GENERATION_CHANGED,
    json_for_provider,
    require_row,
)
from treeclaim.model.parts import ATTRIBUTES
from treeclaim.model.provider import Attributes
from treeclaim.store.operations.providers import providers

ANSWER = shows({"resource_provider_generation": int, ATTRIBUTES.name: SHOWN[ATTRIBUTES]})


@operation(
    "GET /treeclaim/providers/{uuid}/attributes",
    policy=ATTRIBUTES.read_rule,
    answers=(ANSWER,),
)
def list_attributes(call: Call) -> Answer:
    """Show the attributes of a resource provider."""
    with call.services.replica.current() as forest:
        row = require_row(forest, call.arguments["uuid"])
        return _document(forest.attributes_of(row), forest.provider(row).generation)


@operation(
    "PUT /treeclaim/providers/{uuid}/attributes",
    policy=ATTRIBUTES.write_rule,
    answers=(ANSWER,),
    body=BodyReader(AttributesBody),
    refusals=(GENERATION_CHANGED,),
)
def replace_attributes(call: Call) -> Answer:
    """Replace the attributes of a resource provider."""
    body: AttributesBody = json_for_provider(call)
    generation = call.services.store.write(
        providers.replace_attributes,
        call.arguments["uuid"],
        body.resource_provider_generation,
        body.attributes,
    )
    return _document(body.attributes, generation)


def _document(attributes: Attributes, generation: int) -> Answer:
    return {
        "resource_provider_generation": generation,
        ATTRIBUTES.name: ATTRIBUTES.written(attributes),
    }
