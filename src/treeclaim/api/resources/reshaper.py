# SPDX-License-Identifier: Apache-2.0
"""The reshaper (contract page 75)."""

from http import HTTPStatus

from treeclaim.api.protocol.errors import PROVIDER_NOT_FOUND
from treeclaim.api.protocol.operations import Call, Refusal, ValueForms, VersionedSchema, operation
from treeclaim.api.protocol.request.schemas import PROVIDER_KEY, Schema, mapping, record
from treeclaim.api.resources.allocations.operations import (
    UNABLE,
    described_claims,
    read_claims,
    require_sound,
    reshaped_claims,
)
from treeclaim.api.resources.inventories import (
    all_inventories,
    read_inventory,
    with_class_names,
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


def reshape_body(version: Version) -> Schema:
    """Return the schema of POST /reshaper."""
    return record(
        {
            "inventories": mapping(PROVIDER_KEY, all_inventories(version), least=1),
            "allocations": reshaped_claims(version),
        }
    )


def _described_body(schema: Schema) -> Schema:
    for provider in schema["properties"]["inventories"]["patternProperties"].values():
        with_class_names(provider)
    return described_claims(schema)


@operation(
    "POST /reshaper",
    policy="placement:reshaper:reshape",
    since=Feature.RESHAPER,
    body=VersionedSchema(reshape_body),
    forms=ValueForms(body=_described_body),
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
        UNABLE,
        Refusal("update conflict: {error}", InventoryInUseError, ConcurrentChangeError),
    ),
)
def reshape(call: Call) -> None:
    """Replace inventories and claims in one step."""
    body = call.json()
    reshaped = [
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
    require_sound(call, claims)
    call.services.store.write(store.reshape, reshaped, claims)
