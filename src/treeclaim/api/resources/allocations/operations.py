# SPDX-License-Identifier: Apache-2.0
"""/allocations and /resource_providers/{uuid}/allocations (contract page 70)."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import api_error, bad_request
from treeclaim.api.protocol.operations import (
    Call,
    Refusal,
    Reply,
    ValueForms,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request.schemas import ANY_UUID
from treeclaim.api.protocol.request.validation import MOST_VALUES_OF_SOME
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.allocations import hold_terms, kept_requests, schemas
from treeclaim.api.resources.allocations.hold_terms import ClaimMembers
from treeclaim.model.claim import ConsumerClaim, Omission
from treeclaim.model.errors import (
    CapacityExceededError,
    ConcurrentChangeError,
    InventoryMissingError,
    ProviderNotFoundError,
    ResourceClassNotFoundError,
    UnitConstraintError,
)
from treeclaim.model.extension.errors import ConditionedError
from treeclaim.model.microversions import Feature
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.allocations import load_provider_allocations
from treeclaim.store.reading.consumers import load_consumer
from treeclaim.store.reading.holders import ConsumerDetails, load_details

_NO_DETAILS = ConsumerDetails({}, {}, {})

UNABLE = Refusal(
    "Unable to allocate inventory: {error}",
    InventoryMissingError,
    UnitConstraintError,
    CapacityExceededError,
    ConditionedError,
)
"""The answer to what a provider refuses."""

_REFUSALS = (
    UNABLE,
    Refusal(
        "Inventory and/or allocations changed while attempting to allocate", ConcurrentChangeError
    ),
)


@operation(
    "GET /allocations/{consumer_uuid}",
    policy="placement:allocations:list",
    answers=(schemas.CONSUMER,),
)
def show_allocations(call: Call) -> Reply:
    """Show what a consumer holds (section 2)."""
    uuid, is_extended = call.arguments["consumer_uuid"], call.version.is_extended

    def read(
        transaction: ReadTransaction,
    ) -> tuple[tuple[dict[str, Any], float] | None, ConsumerDetails]:
        consumer = load_consumer(transaction, uuid, may_be_empty=is_extended)
        return consumer, load_details(transaction, [uuid]) if is_extended else _NO_DETAILS

    consumer, kept = call.services.store.read(read)
    body: dict[str, Any] = {"allocations": {}}
    modified_at = now()
    if consumer is not None and (consumer[0]["allocations"] or uuid in kept.holds):
        body, modified_at = _shown(call, consumer[0]), consumer[1]
    amounts = {provider: share["resources"] for provider, share in body["allocations"].items()}
    if is_extended:
        # What is kept with it (page 100).
        body |= hold_terms.shown(kept, uuid)
        body |= kept_requests.shown_request(call, kept, uuid, amounts)
    return Reply(body=body, modified_at=modified_at)


_MEMBERS = {
    "project_id": Feature.ALLOCATIONS_BY_PROVIDER,
    "user_id": Feature.ALLOCATIONS_BY_PROVIDER,
    "consumer_generation": Feature.CONSUMER_GENERATIONS,
    "consumer_type": Feature.CONSUMER_TYPES,
}
"""The feature with which a consumer is shown with a member."""


def _shown(call: Call, consumer: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: consumer[name] for name, feature in _MEMBERS.items() if call.has(feature)}
    return {"allocations": consumer["allocations"], **members}


@operation(
    "PUT /allocations/{consumer_uuid}",
    policy="placement:allocations:update",
    body=VersionedSchema(schemas.claim),
    most_values=MOST_VALUES_OF_SOME,
    forms=ValueForms(path={"consumer_uuid": ANY_UUID}, body=schemas.described_claims),
    refusals=_REFUSALS,
)
def replace_allocations(call: Call) -> Reply:
    """Replace what a consumer holds (section 3)."""
    uuid_text = call.arguments["consumer_uuid"]
    consumer_uuid = normalised_uuid(uuid_text)
    if consumer_uuid is None:
        raise bad_request(f"Malformed consumer_uuid: {quote_value(uuid_text)}")
    claims = [_read_claim(call, consumer_uuid, call.json())]
    require_sound(call, claims)
    write_claims(call, claims)
    return Reply(HTTPStatus.NO_CONTENT)


@operation(
    "POST /allocations",
    policy="placement:allocations:manage",
    since=Feature.MANAGE_ALLOCATIONS,
    body=VersionedSchema(schemas.claims),
    most_values=MOST_VALUES_OF_SOME,
    forms=ValueForms(body=schemas.described_claims),
    refusals=_REFUSALS,
)
def manage_allocations(call: Call) -> Reply:
    """Replace what several consumers hold, all or nothing (section 4)."""
    claims = claims_of(call, call.json())
    require_sound(call, claims)
    write_claims(call, claims)
    return Reply(HTTPStatus.NO_CONTENT)


def claims_of(call: Call, body: Mapping[str, Any]) -> list[ConsumerClaim]:
    """Read the claims of several consumers from a checked body."""
    items = call.deadline.each(body.items())
    return [_read_claim(call, uuid, claim, place=quote_value(uuid)) for uuid, claim in items]


def require_sound(call: Call, claims: Sequence[ConsumerClaim]) -> None:
    """Check what claims say of holds and requests, as far as no lock is needed (page 100).

    Raises:
        ApiError: 400.
    """
    hold_terms.require_apart(
        ([claim.consumer_uuid], claim.hold, claim.from_holds) for claim in claims
    )
    kept_requests.require_valid_requests(call, claims)


_NO_MEMBERS = ClaimMembers()


def _read_claim(
    call: Call, consumer_uuid: str, body: Mapping[str, Any], place: str = ""
) -> ConsumerClaim:
    """Read the claim of a consumer at a place of a body (section 3.1).

    Raises:
        ApiError: 400 for members of the extension, which are not checked yet.
    """
    services = call.services
    members = _NO_MEMBERS
    if named := ClaimMembers.model_fields.keys() & body.keys():
        members = schemas.MEMBERS.read({name: body[name] for name in named}, place)
    generation: int | Omission | None = Omission.OMITTED
    if call.has(Feature.CONSUMER_GENERATIONS):
        generation_value = body["consumer_generation"]
        generation = None if generation_value is None else int(generation_value)
    named_type = body.get("consumer_type", Omission.OMITTED)
    hold = hold_terms.hold_of(call, members.hold)
    knows_holds = call.version.is_extended
    return ConsumerClaim(
        consumer_uuid=consumer_uuid,
        allocations=_allocations(call, body["allocations"]),
        project_id=body.get("project_id", services.incomplete_project_id),
        user_id=body.get("user_id", services.incomplete_user_id),
        generation=generation,
        consumer_type=hold_terms.type_of(body.get("consumer_type"), hold)
        if knows_holds
        else named_type,
        knows_holds=knows_holds,
        hold=hold,
        from_holds=hold_terms.sources_of(call, members.from_holds),
        request=members.kept_request,
        tolerates=frozenset(members.tolerates),
    )


def _allocations(
    call: Call, shares: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """Read allocations in either form; in a list the last item of a provider counts."""
    if isinstance(shares, Mapping):
        pairs: Iterable[tuple[str, Mapping[str, Any]]] = shares.items()
    else:
        pairs = ((share["resource_provider"]["uuid"], share) for share in shares)
    return {
        uuid: {name: int(amount) for name, amount in share["resources"].items()}
        for uuid, share in call.deadline.each(pairs)
    }


def write_claims(call: Call, claims: Sequence[ConsumerClaim]) -> None:
    """Write claims; name the consumers if a class does not exist (section 3.3)."""
    try:
        call.services.store.replace_allocations(claims)
    except ResourceClassNotFoundError as error:
        consumers = ", ".join(claim.consumer_uuid for claim in claims)
        text = f"Unable to allocate inventory for consumer {consumers}: {error}"
        raise api_error(error, text, status=HTTPStatus.BAD_REQUEST) from error


@operation(
    "DELETE /allocations/{consumer_uuid}",
    policy="placement:allocations:delete",
)
def delete_allocations(call: Call) -> Reply:
    """Remove everything that a consumer holds (section 5)."""
    call.services.store.delete_allocations(call.arguments["consumer_uuid"])
    return Reply(HTTPStatus.NO_CONTENT)


@operation(
    "GET /resource_providers/{uuid}/allocations",
    policy="placement:resource_providers:allocations:list",
    answers=(schemas.PROVIDER,),
    refusals=(Refusal("Resource provider '{uuid}' not found: {error}", ProviderNotFoundError),),
)
def list_provider_allocations(call: Call) -> Reply:
    """Show what consumers hold on a resource provider (section 6)."""
    shares, generation, modified_at = call.services.store.read(
        load_provider_allocations, call.arguments["uuid"]
    )
    if not call.has(Feature.CONSUMER_GENERATIONS):
        for share in shares.values():
            del share["consumer_generation"]
    return Reply(
        body={"allocations": shares, "resource_provider_generation": generation},
        modified_at=now() if modified_at is None else modified_at,
    )
