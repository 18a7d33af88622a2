# SPDX-License-Identifier: Apache-2.0
"""/allocations and /resource_providers/{uuid}/allocations (contract page 70)."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from treeclaim.api.protocol.errors import bad_request, to_api_error
from treeclaim.api.protocol.operations import (
    Call,
    Refusal,
    Reply,
    ValueForms,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.protocol.request.schemas import (
    ALLOCATIONS,
    AMOUNTS,
    ANY_UUID,
    CLASS_NAME,
    INTEGER,
    PROVIDER_KEY,
    SHORT_TEXT,
    UUID,
    OrNull,
    Schema,
    Shape,
    mapping,
    record,
    transform,
)
from treeclaim.api.resources.allocations import hold_terms, kept_requests
from treeclaim.api.resources.allocations.hold_terms import ClaimMembers
from treeclaim.api.resources.candidates.operations import require_may_draw
from treeclaim.api.resources.candidates.schemas import TYPE_UNLESS_HOLD
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
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import normalised_uuid, quote_value
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.allocations import load_provider_allocations
from treeclaim.store.reading.consumers import load_consumer
from treeclaim.store.reading.holders import ConsumerDetails, load_consumer_details

_RESOURCES = mapping(CLASS_NAME, {"type": "integer", "minimum": 1}, least=1)
_MAPPINGS: Schema = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {"[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": UUID}},
}

MEMBERS = BodyReader(ClaimMembers)
"""Reads the members of the extension; the schemas of claims accept any value for them."""

_DRAW_MEMBERS = ("from_holds", "tolerates")
"""Members that a claim in a reshape must not have."""


def _make_put_schema(version: Version) -> Schema:
    least = 0 if version.has(Feature.CONSUMER_GENERATIONS) else 1
    return _make_claim_schema(version, least, draws=True)


def _make_post_schema(version: Version) -> Schema:
    return mapping(PROVIDER_KEY, _make_claim_schema(version, 0, draws=True), least=1)


def make_reshaped_claims_schema(version: Version) -> Schema:
    """Return the schema of the claims of a reshape, of which there may be none (page 75)."""
    return mapping(PROVIDER_KEY, _make_claim_schema(version, 0, draws=False))


def _make_claim_schema(version: Version, least: int, *, draws: bool) -> Schema:
    required_members: dict[str, Schema] = {"allocations": _make_allocations_schema(version, least)}
    if version.has(Feature.ALLOCATION_OWNERS_REQUIRED):
        required_members |= {"project_id": SHORT_TEXT, "user_id": SHORT_TEXT}
    if version.has(Feature.CONSUMER_GENERATIONS):
        required_members["consumer_generation"] = {"type": ["integer", "null"]}
    if version.has(Feature.CONSUMER_TYPES):
        required_members["consumer_type"] = {"type": "string", "pattern": CLASS_NAME} | SHORT_TEXT
    optional_members = {"mappings": _MAPPINGS} if version.has(Feature.MAPPINGS) else {}
    if version.is_extended:
        # `require_type` requires the type of a claim without `hold`.
        optional_members |= {
            "consumer_type": required_members.pop("consumer_type"),
            **{
                name: {}
                for name in ClaimMembers.model_fields
                if draws or name not in _DRAW_MEMBERS
            },
        }
    return record(required_members, optional_members)


def describe_claims(schema: Schema) -> Schema:
    """Return a copy of a schema that describes the members of the extension."""
    described_schema: Schema = transform(schema, _describe_claim)
    return described_schema


def _describe_claim(node: Schema) -> Schema:
    members = node.get("properties", {})
    if "hold" not in members:
        return node
    described_members = MEMBERS.schema["properties"]
    member_schemas = {
        name: described_members.get(name, schema) for name, schema in members.items()
    }
    return node | {"properties": member_schemas} | TYPE_UNLESS_HOLD


def _make_allocations_schema(version: Version, least: int) -> Schema:
    if version.has(Feature.ALLOCATIONS_BY_PROVIDER):
        share = record({"resources": _RESOURCES}, {"generation": INTEGER})
        return mapping(PROVIDER_KEY, share, least=least)
    item = record({"resource_provider": record({"uuid": UUID}), "resources": _RESOURCES})
    return {"type": "array", "minItems": least, "items": item}


SHOWN_HOLD: Shape = {
    "until": str | None,
    "returns": bool,
    "projects": [str],
    "note": str | None,
    "drawn": {str: AMOUNTS},
}

OWNER: Shape = {
    "project_id": str,
    "user_id": str,
    "consumer_generation": int,
    "consumer_type": str,
}
"""The owner of a consumer in responses."""

DETAILS: Shape = {
    # Terms of a hold; null for other consumers.
    "hold?": OrNull(SHOWN_HOLD),
    # The drawn amounts of a consumer, by hold and provider.
    "drawn_from?": {str: {str: AMOUNTS}},
    "request?": OrNull([str]),
}
"""The stored details of a consumer in responses."""

CONSUMER: Shape = (
    {"allocations": ALLOCATIONS}
    | {f"{name}?": shape for name, shape in OWNER.items()}
    | DETAILS
    | {"request_valid?": bool | None}
)
"""The allocations of a consumer; without allocations, Placement's response has no other member."""

PROVIDER: Shape = {
    "allocations": {str: {"resources": AMOUNTS, "consumer_generation": int}},
    "resource_provider_generation": int,
}


_NO_DETAILS = ConsumerDetails({}, {}, {})

UNABLE_TO_ALLOCATE = Refusal(
    "Unable to allocate inventory: {error}",
    InventoryMissingError,
    UnitConstraintError,
    CapacityExceededError,
    ConditionedError,
)
"""The response to a claim that a provider rejects."""

_REFUSALS = (
    UNABLE_TO_ALLOCATE,
    Refusal(
        "Inventory and/or allocations changed while attempting to allocate", ConcurrentChangeError
    ),
)


@operation(
    "GET /allocations/{consumer_uuid}",
    policy="placement:allocations:list",
    shows=CONSUMER,
)
def show_allocations(call: Call) -> Reply:
    """Show the allocations of a consumer (section 2)."""
    uuid, is_extended = call.arguments["consumer_uuid"], call.version.is_extended

    def read(
        transaction: ReadTransaction,
    ) -> tuple[tuple[dict[str, Any], float] | None, ConsumerDetails]:
        consumer = load_consumer(transaction, uuid, may_be_empty=is_extended)
        return consumer, load_consumer_details(transaction, [uuid]) if is_extended else _NO_DETAILS

    consumer, details = call.services.store.read(read)
    body: dict[str, Any] = {"allocations": {}}
    modified_at = None
    if consumer is not None and (consumer[0]["allocations"] or uuid in details.holds):
        body, modified_at = _make_consumer_document(call, consumer[0]), consumer[1]
    amounts = {provider: share["resources"] for provider, share in body["allocations"].items()}
    if is_extended:
        body |= hold_terms.render_terms(details, uuid)
        body |= kept_requests.render_request(call, details, uuid, amounts)
    return Reply(body=body, modified_at=modified_at)


_MEMBERS = {
    "project_id": Feature.ALLOCATIONS_BY_PROVIDER,
    "user_id": Feature.ALLOCATIONS_BY_PROVIDER,
    "consumer_generation": Feature.CONSUMER_GENERATIONS,
    "consumer_type": Feature.CONSUMER_TYPES,
}
"""The feature that introduced each member of a consumer."""


def _make_consumer_document(call: Call, consumer: Mapping[str, Any]) -> dict[str, Any]:
    members = {name: consumer[name] for name, feature in _MEMBERS.items() if call.has(feature)}
    return {"allocations": consumer["allocations"], **members}


@operation(
    "PUT /allocations/{consumer_uuid}",
    policy="placement:allocations:update",
    body=VersionedSchema(_make_put_schema),
    forms=ValueForms(path={"consumer_uuid": ANY_UUID}, body=describe_claims),
    refusals=_REFUSALS,
)
def replace_allocations(call: Call) -> None:
    """Replace the allocations of a consumer (section 3)."""
    uuid_text = call.arguments["consumer_uuid"]
    consumer_uuid = normalised_uuid(uuid_text)
    if consumer_uuid is None:
        raise bad_request(f"Malformed consumer_uuid: {quote_value(uuid_text)}")
    claims = [_read_claim(call, consumer_uuid, call.read_body())]
    require_valid_claims(call, claims)
    write_claims(call, claims)


@operation(
    "POST /allocations",
    policy="placement:allocations:manage",
    since=Feature.MANAGE_ALLOCATIONS,
    body=VersionedSchema(_make_post_schema),
    forms=ValueForms(body=describe_claims),
    refusals=_REFUSALS,
)
def manage_allocations(call: Call) -> None:
    """Replace the allocations of several consumers, all or none (section 4)."""
    claims = read_claims(call, call.read_body())
    require_valid_claims(call, claims)
    write_claims(call, claims)


def read_claims(call: Call, body: Mapping[str, Any]) -> list[ConsumerClaim]:
    """Read claims by consumer from a validated body; see `_read_claim`."""
    items = call.deadline.each(body.items())
    return [_read_claim(call, uuid, claim, place=quote_value(uuid)) for uuid, claim in items]


def require_valid_claims(call: Call, claims: Sequence[ConsumerClaim]) -> None:
    """Raise a 400 for invalid holds and requests of claims, as far as this needs no lock (page 100)."""
    hold_terms.require_disjoint(
        ([claim.consumer_uuid], claim.hold, claim.from_holds) for claim in claims
    )
    kept_requests.require_valid_requests(call, claims)


_NO_MEMBERS = ClaimMembers()


def _read_claim(
    call: Call, consumer_uuid: str, body: Mapping[str, Any], place: str = ""
) -> ConsumerClaim:
    """Read the claim of a consumer at a place of a body (section 3.1).

    Raises:
        ApiError: 400 for invalid members of the extension, 403.
    """
    services = call.services
    members = _NO_MEMBERS
    if named_members := ClaimMembers.model_fields.keys() & body.keys():
        members = MEMBERS.read({name: body[name] for name in named_members}, place)
    generation: int | Omission | None = Omission.OMITTED
    if call.has(Feature.CONSUMER_GENERATIONS):
        generation_value = body["consumer_generation"]
        generation = None if generation_value is None else int(generation_value)
    hold = hold_terms.read_hold(call, members.hold)
    knows_holds = call.version.is_extended
    claim = ConsumerClaim(
        consumer_uuid=consumer_uuid,
        allocations=_read_allocations(call, body["allocations"]),
        project_id=body.get("project_id", services.incomplete_project_id),
        user_id=body.get("user_id", services.incomplete_user_id),
        generation=generation,
        consumer_type=hold_terms.require_type(body.get("consumer_type"), hold)
        if knows_holds
        else body.get("consumer_type", Omission.OMITTED),
        knows_holds=knows_holds,
        hold=hold,
        from_holds=members.from_holds,
        request=members.kept_request,
        tolerates=frozenset(members.tolerates),
    )
    require_may_draw(call, claim)
    return claim


def _read_allocations(
    call: Call, shares: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, int]]:
    """Read allocations from either form; in a list, the last item of a provider applies."""
    if isinstance(shares, Mapping):
        pairs: Iterable[tuple[str, Mapping[str, Any]]] = shares.items()
    else:
        pairs = ((share["resource_provider"]["uuid"], share) for share in shares)
    return {
        uuid: {name: int(amount) for name, amount in share["resources"].items()}
        for uuid, share in call.deadline.each(pairs)
    }


def write_claims(call: Call, claims: Sequence[ConsumerClaim]) -> None:
    """Write claims; the error for an unknown class names the consumers (section 3.3)."""
    try:
        call.services.store.replace_allocations(claims)
    except ResourceClassNotFoundError as error:
        consumers = ", ".join(claim.consumer_uuid for claim in claims)
        text = f"Unable to allocate inventory for consumer {consumers}: {error}"
        raise to_api_error(error, text, status=HTTPStatus.BAD_REQUEST) from error


@operation(
    "DELETE /allocations/{consumer_uuid}",
    policy="placement:allocations:delete",
)
def delete_allocations(call: Call) -> None:
    """Delete all allocations of a consumer (section 5)."""
    call.services.store.delete_allocations(call.arguments["consumer_uuid"])


@operation(
    "GET /resource_providers/{uuid}/allocations",
    policy="placement:resource_providers:allocations:list",
    shows=PROVIDER,
    refusals=(Refusal("Resource provider '{uuid}' not found: {error}", ProviderNotFoundError),),
)
def list_provider_allocations(call: Call) -> Reply:
    """List the allocations on a resource provider (section 6)."""
    shares, generation, modified_at = call.services.store.read(
        load_provider_allocations, call.arguments["uuid"]
    )
    if not call.has(Feature.CONSUMER_GENERATIONS):
        for share in shares.values():
            del share["consumer_generation"]
    return Reply(
        body={"allocations": shares, "resource_provider_generation": generation},
        modified_at=modified_at,
    )
