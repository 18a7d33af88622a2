# SPDX-License-Identifier: Apache-2.0
"""The reshaper (contract page 75)."""

from http import HTTPStatus

from treeclaim.api.protocol.errors import PROVIDER_NOT_FOUND
from treeclaim.api.protocol.operations import Call, Refusal, ValueForms, VersionedSchema, operation
from treeclaim.api.protocol.request.schemas import PROVIDER_KEY, Schema, mapping, record
from treeclaim.api.resources.allocations.operations import (
    UNABLE_TO_ALLOCATE,
    describe_claims,
    make_reshaped_claims_schema,
    read_claims,
    require_valid_claims,
)
from treeclaim.api.resources.inventories import (
    describe_class_names,
    make_inventories_schema,
    read_inventory,
)
from treeclaim.model.claim import ReshapedInventory
from treeclaim.model.errors import (
    ConcurrentChangeError,
    InventoryInUseError,
    ProviderNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.microversions import Feature, Version
from treeclaim.store.operations import reshaper as store


def _make_body_schema(version: Version) -> Schema:
    return record(
        {
            "inventories": mapping(PROVIDER_KEY, make_inventories_schema(version), least=1),
            "allocations": make_reshaped_claims_schema(version),
        }
    )


def _describe_body(schema: Schema) -> Schema:
    for provider in schema["properties"]["inventories"]["patternProperties"].values():
        describe_class_names(provider)
    return describe_claims(schema)


@operation(
    "POST /reshaper",
    policy="placement:reshaper:reshape",
    since=Feature.RESHAPER,
    body=VersionedSchema(_make_body_schema),
    forms=ValueForms(body=_describe_body),
    refusals=(
        Refusal(
            "Resource provider {error.uuid} in inventories not found: {error}",
            ProviderNotFoundError,
            status=HTTPStatus.BAD_REQUEST,
            code=PROVIDER_NOT_FOUND,
        ),
        Refusal(
            "malformed reshaper data: {error}",
            ResourceClassNotFoundError,
            status=HTTPStatus.BAD_REQUEST,
        ),
        UNABLE_TO_ALLOCATE,
        Refusal("update conflict: {error}", InventoryInUseError, ConcurrentChangeError),
    ),
)
def reshape(call: Call) -> None:
    """Replace inventories and claims in one step."""
    body = call.read_body()
    reshaped_inventories = [
        ReshapedInventory(
            provider_uuid=uuid,
            generation=int(document["resource_provider_generation"]),
            inventories={
                name: read_inventory(inventory)
                for name, inventory in call.deadline.each(document["inventories"].items())
            },
        )
        for uuid, document in body["inventories"].items()
    ]
    claims = read_claims(call, body["allocations"])
    require_valid_claims(call, claims)
    call.services.store.write(store.reshape, reshaped_inventories, claims)
