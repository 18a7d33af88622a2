# SPDX-License-Identifier: Apache-2.0
"""Aggregates of a provider (contract page 40)."""

from collections.abc import Sequence

from treeclaim.api.protocol.operations import Answer, Call, Operation, Reply, Versioned
from treeclaim.api.protocol.request.schemas import GENERATION, STRINGS, UUID, record
from treeclaim.api.protocol.request.validation import MOST_VALUES_OF_SOME
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.providers.rows import (
    json_for_provider,
    replacing_a_part,
    require_row,
)
from treeclaim.model.microversions import Feature, Version
from treeclaim.store.operations.providers import aggregates as store

AGGREGATES = Answer(body=record({"aggregates": STRINGS} | GENERATION))
"""The aggregates of a provider."""


def aggregates(version: Version) -> Schema:
    """Return the schema of PUT /resource_providers/{uuid}/aggregates."""
    uuids: Schema = {"type": "array", "items": UUID, "uniqueItems": True}
    if not version.has(Feature.AGGREGATE_GENERATION):
        return uuids
    return record({"aggregates": uuids} | GENERATION)


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
    with replacing_a_part():
        generation = call.services.store.write(
            store.replace, call.arguments["uuid"], aggregates, given
        )
    return _shown(call, aggregates, generation)


def _shown(call: Call, aggregates: Sequence[str], generation: int) -> Reply:
    body: dict[str, object] = {"aggregates": aggregates}
    if call.has(Feature.AGGREGATE_GENERATION):
        body["resource_provider_generation"] = generation
    return Reply(body=body, modified_at=now())


_PATH = "/resource_providers/{uuid}/aggregates"

OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        list_aggregates,
        policy="placement:resource_providers:aggregates:list",
        summary="Show the aggregates of a resource provider.",
        answers=(AGGREGATES,),
        since=Feature.AGGREGATES,
        media_first=True,
    ),
    Operation(
        "PUT",
        _PATH,
        replace_aggregates,
        policy="placement:resource_providers:aggregates:update",
        summary="Replace the aggregates of a resource provider.",
        answers=(AGGREGATES,),
        since=Feature.AGGREGATES,
        media_first=True,
        body=Versioned(aggregates),
        most_values=MOST_VALUES_OF_SOME,
    ),
)
