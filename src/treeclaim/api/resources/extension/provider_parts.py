# SPDX-License-Identifier: Apache-2.0
"""Attributes and conditions of providers (contract page 102, sections 1 and 3)."""

import re
from http import HTTPStatus
from typing import Annotated, Literal

from pydantic import Field

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import (
    EMPTY,
    Answer,
    Call,
    DescribedResponse,
    Reply,
    ValueForms,
    operation,
)
from treeclaim.api.protocol.request.bodies import OR_NULL, Body, BodyReader, TimeOrNull
from treeclaim.api.protocol.request.schemas import Shape, text
from treeclaim.api.resources.allocations.hold_terms import read_until
from treeclaim.api.resources.extension.provider_batch import PART_SHAPES, AttributesBody
from treeclaim.api.resources.providers.provider_json import (
    GENERATION_CHANGED,
    read_provider_body,
    require_row,
)
from treeclaim.model.names import quote_value
from treeclaim.model.parts import ATTRIBUTES, CONDITIONS
from treeclaim.model.provider import (
    CONDITION_KEY,
    EFFECTS,
    LONGEST_REASON,
    Attributes,
    Condition,
    make_condition_documents,
)
from treeclaim.store.operations.providers import conditions as store
from treeclaim.store.operations.providers.entries import write_part

_ATTRIBUTES: Shape = {
    "resource_provider_generation": int,
    ATTRIBUTES.name: PART_SHAPES[ATTRIBUTES],
}


@operation(
    "GET /treeclaim/providers/{uuid}/attributes",
    policy=ATTRIBUTES.read_rule,
    shows=_ATTRIBUTES,
)
def list_attributes(call: Call) -> Answer:
    """Show the attributes of a resource provider."""
    with call.services.replica.borrow_forest() as forest:
        row = require_row(forest, call.arguments["uuid"])
        return _make_attributes_document(
            forest.attributes_of(row), forest.provider(row).generation
        )


@operation(
    "PUT /treeclaim/providers/{uuid}/attributes",
    policy=ATTRIBUTES.write_rule,
    shows=_ATTRIBUTES,
    body=BodyReader(AttributesBody),
    refusals=(GENERATION_CHANGED,),
)
def replace_attributes(call: Call) -> Answer:
    """Replace the attributes of a resource provider."""
    body: AttributesBody = read_provider_body(call)
    written_provider = call.services.store.write(
        write_part,
        call.arguments["uuid"],
        ATTRIBUTES,
        body.attributes,
        body.resource_provider_generation,
    )
    return _make_attributes_document(body.attributes, written_provider.generation)


def _make_attributes_document(attributes: Attributes, generation: int) -> Answer:
    return {
        "resource_provider_generation": generation,
        ATTRIBUTES.name: ATTRIBUTES.to_json(attributes),
    }


_AFFECTED_COUNTS = DescribedResponse(shows={"consumers": int, "providers": int})


class ConditionBody(Body):
    """The condition to set on a provider."""

    effect: Literal["no_new", "leave"]
    until: TimeOrNull = OR_NULL
    reason: Annotated[str, Field(max_length=LONGEST_REASON)] = ""
    on_use: bool = False
    began: bool = False


class ConditionQuery(Body):
    """The query of PUT …/conditions/{key}."""

    dry_run: Literal["true", "false"] = "false"


def read_condition(call: Call, key: str, body: ConditionBody) -> Condition:
    """Read a condition; raise a 400 for an invalid key or end."""
    if re.fullmatch(CONDITION_KEY, key) is None:
        raise bad_request(
            f"Invalid key of a condition: {quote_value(key)} is not of the form {CONDITION_KEY}."
        )
    until = body.until
    if body.on_use and until is not None:
        raise bad_request("'until' cannot be combined with 'on_use'.")
    return Condition(
        key,
        EFFECTS[body.effect],
        None if until is None else read_until(call, until),
        body.on_use,
        body.began or not body.on_use,
        body.reason,
    )


@operation(
    "GET /treeclaim/providers/{uuid}/conditions",
    policy=CONDITIONS.read_rule,
    shows={CONDITIONS.name: PART_SHAPES[CONDITIONS]},
)
def list_conditions(call: Call) -> Answer:
    """Show the conditions of a resource provider."""
    with call.services.replica.borrow_forest() as forest:
        row = require_row(forest, call.arguments["uuid"])
        documents = make_condition_documents(forest.conditions(row))
    return {CONDITIONS.name: documents}


@operation(
    "PUT /treeclaim/providers/{uuid}/conditions/{key}",
    policy=CONDITIONS.write_rule,
    responses=(EMPTY, _AFFECTED_COUNTS),
    body=BodyReader(ConditionBody),
    forms=ValueForms(path={"key": text(CONDITION_KEY)}),
)
def put_condition(call: Call, query: ConditionQuery) -> Answer:
    """Set a condition of a resource provider, or count the affected consumers and providers."""
    uuid, services = call.arguments["uuid"], call.services
    body: ConditionBody = read_provider_body(call)
    condition = read_condition(call, call.arguments["key"], body)
    if query.dry_run == "true":
        affected_counts = services.store.read(store.count_affected, uuid)
        return Reply(HTTPStatus.OK, body=affected_counts)
    services.store.write(store.put, uuid, condition)
    return None


@operation(
    "DELETE /treeclaim/providers/{uuid}/conditions/{key}",
    policy=CONDITIONS.write_rule,
)
def delete_condition(call: Call) -> None:
    """Remove a condition from a resource provider."""
    call.services.store.write(store.delete, call.arguments["uuid"], call.arguments["key"])
