# SPDX-License-Identifier: Apache-2.0
"""/resource_providers (contract page 20)."""

import uuid
from http import HTTPStatus

from treeclaim.api.protocol.errors import bad_request, to_api_error
from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    Refusal,
    Reply,
    ValueForms,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request.schemas import (
    DASHED_UUID,
    LINKS,
    MEMBER_OF,
    STRING,
    UUID,
    Schema,
    Shape,
    list_pattern,
    record,
    text,
)
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.providers.provider_json import (
    make_provider_path,
    read_provider_body,
    require_row,
    serialize_provider,
    serialize_provider_list,
)
from treeclaim.forest.listing.selection import copy_providers, matching_providers
from treeclaim.model.claim import Omission
from treeclaim.model.errors import (
    DuplicateProviderError,
    InvalidParentError,
    ProviderNotFoundError,
)
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import normalised_uuid
from treeclaim.model.provider import Provider
from treeclaim.model.query import value_parsers
from treeclaim.model.request import ProviderConditions, ProviderQuery
from treeclaim.replica import WholeAnswer
from treeclaim.replica.questions import make_question_key
from treeclaim.store.operations.providers import providers as store

_NAME: dict[str, Schema] = {"name": {"type": "string", "maxLength": 200}}


def _make_new_provider_schema(version: Version) -> Schema:
    return record(_NAME, {"uuid": UUID} | _make_parent_member(version))


def _make_changed_provider_schema(version: Version) -> Schema:
    return record(_NAME, _make_parent_member(version))


def _make_parent_member(version: Version) -> dict[str, Schema]:
    if not version.has(Feature.NESTED_PROVIDERS):
        return {}
    return {"parent_provider_uuid": {"anyOf": [UUID, {"type": "null"}]}}


def _require_name(schema: Schema) -> Schema:
    """Require a non-empty name in the described schema of a new provider; the handler rejects an empty name."""
    schema["properties"]["name"]["minLength"] = 1
    return schema


def _make_query_schema(version: Version) -> Schema:
    parameters = {"name": STRING, "uuid": DASHED_UUID}
    for feature, name, schema in (
        (Feature.MEMBER_OF_FILTER, "member_of", STRING),
        (Feature.RESOURCES_FILTER, "resources", STRING),
        (Feature.NESTED_PROVIDERS, "in_tree", DASHED_UUID),
        (Feature.REQUIRED_FILTER, "required", STRING),
    ):
        if version.has(feature):
            parameters[name] = schema
    return record({}, parameters)


QUERY = VersionedSchema(_make_query_schema)


_PROVIDER: Shape = {
    "uuid": str,
    "name": str,
    "generation": int,
    "links": LINKS,
    "parent_provider_uuid": str | None,
    "root_provider_uuid": str,
}

_BLANK = r"\s\x00-\x1f\x7f-\x9f"
"""Characters that are stripped from the elements of a list; regular expressions differ in their classes of blanks."""

_ANY_TRAIT = f"[^!,{_BLANK}]([^,]*[^,{_BLANK}])?"
_ANY_SIGNED_TRAITS = f"(?!in:)!*{_ANY_TRAIT}(,!*{_ANY_TRAIT})*"

_ANY_SELECTION: dict[str, Schema] = {
    "resources": text(list_pattern("[^:,]*:[1-9][0-9]*")),
    "required": text(f"(in:{list_pattern(_ANY_TRAIT)}|{_ANY_SIGNED_TRAITS})"),
    "member_of": MEMBER_OF,
}
"""Filters with names of any form: an unknown name is no error if the other filters match no provider."""


@operation(
    "GET /resource_providers",
    policy="placement:resource_providers:list",
    shows={"resource_providers": [_PROVIDER]},
    query=QUERY,
    forms=ValueForms(query=_ANY_SELECTION),
    refusals=(lists.refuse_unknown_class("resources"),),
)
def list_providers(call: Call) -> Answer:
    """List resource providers (section 2)."""
    query = _read_query(call)
    replica = call.services.replica
    key = make_question_key("providers", call.version, call.link(""), call.request.query_string)
    with replica.borrow_forest() as forest:
        version = replica.follower.version
        kept_answer = replica.answers.find(version, key)
        if kept_answer is not None:
            return Reply(body=list(kept_answer.pieces), modified_at=kept_answer.modified_at)
        providers = copy_providers(forest, matching_providers(forest, query))
    body = serialize_provider_list(providers, call)
    if isinstance(body, list):
        replica.answers.keep(version, key, WholeAnswer.of(body, modified_at=providers.newest))
    return Reply(body=body, modified_at=providers.newest)


def _read_query(call: Call) -> ProviderQuery:
    pairs = call.read_query()
    query = require_query(QUERY.at(call.version), pairs)
    memberships = [value for name, value in pairs if name == "member_of"]
    membership = value_parsers.parse_member_of(memberships, call.version)
    required_values = [value for name, value in pairs if name == "required"]
    if not call.has(Feature.ANY_TRAITS):
        # The last value applies.
        required_values = required_values[-1:]
    traits = [value_parsers.parse_required(value, call.version) for value in required_values]
    trees = ProviderConditions(in_tree=(query["in_tree"],) if "in_tree" in query else ())
    return ProviderQuery(
        name=query.get("name") or None,
        uuids=frozenset((query["uuid"],)) if "uuid" in query else None,
        conditions=ProviderConditions.together([*traits, membership, trees]),
        resources=value_parsers.parse_resources(query["resources"])
        if "resources" in query
        else {},
    )


@operation(
    "POST /resource_providers",
    policy="placement:resource_providers:create",
    shows=_PROVIDER,
    has_location=True,
    body=VersionedSchema(_make_new_provider_schema),
    forms=ValueForms(body=_require_name),
)
def create_provider(call: Call) -> Reply:
    """Create a resource provider (section 3)."""
    body = call.read_body()
    name = body["name"]
    if not name:
        raise bad_request("A resource provider's name is required: the name is empty.")
    uuid_text = body.get("uuid")
    provider_uuid = str(uuid.uuid4()) if uuid_text is None else normalised_uuid(uuid_text)
    try:
        provider = call.services.store.write(
            store.create,
            uuid=str(provider_uuid),
            name=name,
            parent_uuid=body.get("parent_provider_uuid"),
        )
    except InvalidParentError as error:
        text = f'Unable to create resource provider "{name}", {provider_uuid}: {error}'
        raise to_api_error(error, text) from error
    location = make_provider_path(provider.uuid)
    if not call.has(Feature.CREATED_PROVIDER_SHOWN):
        return Reply(HTTPStatus.CREATED, location=location)
    return _make_reply(call, provider, location)


def _make_reply(call: Call, provider: Provider, location: str | None = None) -> Reply:
    return Reply(
        body=[serialize_provider(provider, call)],
        location=location,
        modified_at=provider.modified_at,
    )


@operation(
    "GET /resource_providers/{uuid}",
    policy="placement:resource_providers:show",
    shows=_PROVIDER,
)
def show_provider(call: Call) -> Answer:
    """Show a resource provider (section 4)."""
    with call.services.replica.borrow_forest() as forest:
        provider = forest.provider(require_row(forest, call.arguments["uuid"]))
    return _make_reply(call, provider)


@operation(
    "PUT /resource_providers/{uuid}",
    policy="placement:resource_providers:update",
    shows=_PROVIDER,
    body=VersionedSchema(_make_changed_provider_schema),
    refusals=(
        Refusal(
            "Conflicting resource provider {error.name} already exists.", DuplicateProviderError
        ),
        Refusal("Unable to save resource provider {uuid}: {error}", InvalidParentError),
    ),
)
def update_provider(call: Call) -> Answer:
    """Rename or move a resource provider (section 5)."""
    body = read_provider_body(call)
    parent = body.get("parent_provider_uuid", Omission.OMITTED)
    provider = call.services.store.write(
        store.update,
        call.arguments["uuid"],
        name=body["name"],
        parent=parent,
        may_reparent=call.has(Feature.REPARENTING),
    )
    return _make_reply(call, provider)


@operation(
    "DELETE /resource_providers/{uuid}",
    policy="placement:resource_providers:delete",
    refusals=(
        Refusal("No resource provider with uuid {uuid} found for delete", ProviderNotFoundError),
    ),
)
def delete_provider(call: Call) -> None:
    """Delete a resource provider (section 6)."""
    call.services.store.write(store.delete, call.arguments["uuid"])
