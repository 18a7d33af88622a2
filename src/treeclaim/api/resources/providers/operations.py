# SPDX-License-Identifier: Apache-2.0
"""/resource_providers (contract page 20)."""

import uuid
from collections.abc import Iterable
from http import HTTPStatus

from treeclaim.api.protocol.errors import ApiError, api_error, bad_request
from treeclaim.api.protocol.operations import EMPTY, Call, Forms, Operation, Reply, Versioned
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.providers import schemas
from treeclaim.api.resources.providers.schemas import QUERY
from treeclaim.api.resources.providers.writing import (
    few_providers_json,
    json_for_provider,
    path_of,
    provider_json,
    provider_list_json,
    require_row,
)
from treeclaim.forest.answer.listing import matching_providers, provider_list
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import (
    DuplicateProviderError,
    InvalidParentError,
    ProviderNotFoundError,
    ResourceClassNotFoundError,
)
from treeclaim.model.microversions import Feature
from treeclaim.model.names import normalised_uuid
from treeclaim.model.request import ProviderConditions, ProviderQuery
from treeclaim.replica import KeptAnswer
from treeclaim.replica.questions import key_of
from treeclaim.store.operations.providers import providers as store

_FEW = 8
"""Providers up to which a list is written one by one, and is not worth keeping: a tree, or what a
name finds. Writing a longer one column by column is quicker."""


def list_providers(call: Call) -> Reply:
    """List the providers that match all filters (section 2)."""
    query = _provider_query(call)
    replica = call.services.replica
    key = key_of("providers", call.version, call.link(""), call.request.query_string)
    with replica.current() as forest:
        known = replica.known(key)
        if known is not None:
            return _listed(list(known.pieces), known.modified_at)
        version, rows = replica.version, _matching(forest, query)
        is_short = len(rows) <= _FEW
        few = [forest.provider(row) for row in rows.tolist()] if is_short else []
        many = None if is_short else provider_list(forest, rows)
    if many is None:
        newest = max((provider.modified_at for provider in few), default=None)
        return _listed([few_providers_json(few, call)], newest)
    body = provider_list_json(many, call)
    if isinstance(body, list):
        replica.keep(version, key, KeptAnswer.of(body, modified_at=many.newest))
    return _listed(body, many.newest)


def _matching(forest: Forest, query: ProviderQuery) -> Rows:
    """Return the rows of the providers that match.

    Raises:
        ApiError, TraitsNotFoundError: for unknown names (section 2.6).
    """
    try:
        return matching_providers(forest, query)
    except ResourceClassNotFoundError as error:
        raise api_error(
            error,
            prefix="Invalid resource class in resources parameter: ",
            status=HTTPStatus.BAD_REQUEST,
        ) from error


def _listed(body: Iterable[bytes | memoryview], newest: float | None) -> Reply:
    """Return the answer with a list, and when its last change was."""
    modified_at = now() if newest is None else newest
    return Reply(body=body, modified_at=modified_at, is_ready_made=True)


def _provider_query(call: Call) -> ProviderQuery:
    pairs = call.query()
    query = require_query(QUERY.at(call.version), pairs)
    membership = parameters.member_of(
        [value for name, value in pairs if name == "member_of"], call.version
    )
    required = [value for name, value in pairs if name == "required"]
    if not call.has(Feature.ANY_TRAITS):
        required = required[-1:]
    traits = parameters.Traits.together(
        parameters.required(value, call.version) for value in required
    )
    return ProviderQuery(
        name=query.get("name") or None,
        uuid=query.get("uuid"),
        conditions=ProviderConditions(
            required=traits.required,
            forbidden=traits.forbidden,
            member_of=membership.member_of,
            forbidden_aggregates=membership.forbidden,
            in_tree=(query["in_tree"],) if "in_tree" in query else (),
        ),
        resources=parameters.resources(query["resources"]) if "resources" in query else {},
    )


def create_provider(call: Call) -> Reply:
    """Create a provider (section 3)."""
    body = call.json()
    name = body["name"]
    if not name:
        raise bad_request("A resource provider's name is required: the name is empty.")
    given = body.get("uuid")
    provider_uuid = str(uuid.uuid4()) if given is None else normalised_uuid(given)
    try:
        provider = call.services.store.write(
            store.create,
            uuid=str(provider_uuid),
            name=name,
            parent_uuid=body.get("parent_provider_uuid"),
        )
    except InvalidParentError as error:
        raise api_error(
            error, prefix=f'Unable to create resource provider "{name}", {provider_uuid}: '
        ) from error
    location = path_of(provider.uuid)
    if not call.has(Feature.CREATED_PROVIDER_SHOWN):
        return Reply(HTTPStatus.CREATED, location=location)
    return Reply(
        body=[provider_json(provider, call)],
        location=location,
        modified_at=provider.modified_at,
        is_ready_made=True,
    )


def show_provider(call: Call) -> Reply:
    """Show a provider (section 4)."""
    with call.services.replica.current() as forest:
        provider = forest.provider(require_row(forest, call.arguments["uuid"]))
    return Reply(
        body=[provider_json(provider, call)],
        modified_at=provider.modified_at,
        is_ready_made=True,
    )


def update_provider(call: Call) -> Reply:
    """Rename or move a provider (section 5)."""
    provider_uuid = call.arguments["uuid"]
    body = json_for_provider(call)
    parent = body.get("parent_provider_uuid", store.KeepParent.KEEP)
    try:
        provider = call.services.store.write(
            store.update,
            provider_uuid,
            name=body["name"],
            parent=parent,
            may_reparent=call.has(Feature.REPARENTING),
        )
    except DuplicateProviderError as error:
        raise ApiError(
            HTTPStatus.CONFLICT,
            f"Conflicting resource provider {body['name']} already exists.",
            api_error(error).code,
        ) from error
    except InvalidParentError as error:
        raise api_error(
            error, prefix=f"Unable to save resource provider {provider_uuid}: "
        ) from error
    return Reply(
        body=[provider_json(provider, call)],
        modified_at=provider.modified_at,
        is_ready_made=True,
    )


def delete_provider(call: Call) -> Reply:
    """Delete a provider (section 6)."""
    provider_uuid = call.arguments["uuid"]
    try:
        call.services.store.write(store.delete, provider_uuid)
    except ProviderNotFoundError as error:
        raise ApiError(
            HTTPStatus.NOT_FOUND,
            f"No resource provider with uuid {provider_uuid} found for delete",
        ) from error
    return Reply(HTTPStatus.NO_CONTENT)


OPERATIONS = (
    Operation(
        "GET",
        "/resource_providers",
        list_providers,
        policy="placement:resource_providers:list",
        summary="List resource providers.",
        answers=(schemas.PROVIDERS,),
        query=schemas.QUERY,
        forms=Forms(query=schemas.FILTER_FORMS),
    ),
    Operation(
        "POST",
        "/resource_providers",
        create_provider,
        policy="placement:resource_providers:create",
        summary="Create a resource provider.",
        answers=(schemas.CREATED,),
        body=Versioned(schemas.new_provider),
        forms=Forms(body=schemas.with_name),
    ),
    Operation(
        "GET",
        "/resource_providers/{uuid}",
        show_provider,
        policy="placement:resource_providers:show",
        summary="Show a resource provider.",
        answers=(schemas.PROVIDER,),
    ),
    Operation(
        "PUT",
        "/resource_providers/{uuid}",
        update_provider,
        policy="placement:resource_providers:update",
        summary="Rename or move a resource provider.",
        answers=(schemas.PROVIDER,),
        body=Versioned(schemas.changed_provider),
    ),
    Operation(
        "DELETE",
        "/resource_providers/{uuid}",
        delete_provider,
        policy="placement:resource_providers:delete",
        summary="Delete a resource provider.",
        answers=(EMPTY,),
    ),
)
