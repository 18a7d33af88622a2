# SPDX-License-Identifier: Apache-2.0
"""/resource_providers/{uuid}/aggregates (contract page 40)."""

from collections.abc import Sequence
from http import HTTPStatus

from treeclaim.api.protocol.errors import ApiError, api_error
from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.providers.rows import json_for_provider, require_row
from treeclaim.model.errors import ProviderGenerationConflictError
from treeclaim.model.microversions import Feature
from treeclaim.store.operations.providers import aggregates as store


def list_aggregates(call: Call) -> Reply:
    """Show the aggregates of a provider (section 1)."""
    with call.services.replica.current() as forest:
        row = require_row(forest, call.arguments["uuid"])
        return _shown(call, forest.aggregates(row), forest.provider(row).generation)


def replace_aggregates(call: Call) -> Reply:
    """Replace the aggregates of a provider (section 2)."""
    body = json_for_provider(call)
    has_generation = call.has(Feature.AGGREGATE_GENERATION)
    aggregates = body["aggregates"] if has_generation else body
    given = int(body["resource_provider_generation"]) if has_generation else None
    try:
        generation = call.services.store.write(
            store.replace, call.arguments["uuid"], aggregates, given
        )
    except ProviderGenerationConflictError as error:
        raise ApiError(
            HTTPStatus.CONFLICT,
            "Resource provider's generation already changed. Please update the generation and "
            "try again.",
            api_error(error).code,
        ) from error
    return _shown(call, aggregates, generation)


def _shown(call: Call, aggregates: Sequence[str], generation: int) -> Reply:
    body: dict[str, object] = {"aggregates": aggregates}
    if call.has(Feature.AGGREGATE_GENERATION):
        body["resource_provider_generation"] = generation
    return Reply(body=body, modified_at=now())
