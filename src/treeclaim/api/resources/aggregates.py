# SPDX-License-Identifier: Apache-2.0
"""Aggregates of a provider (contract page 40), and displayed names of aggregates (page 99)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from treeclaim.api.protocol.operations import Answer, Call, VersionedSchema, operation
from treeclaim.api.protocol.request.bodies import Body, DashedUuid, ShortText
from treeclaim.api.protocol.request.query_models import Uuids
from treeclaim.api.protocol.request.schemas import GENERATION, LINKS, UUID, Schema, Shape, record
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.providers.provider_json import (
    GENERATION_CHANGED,
    read_provider_body,
    require_row,
)
from treeclaim.model import parts
from treeclaim.model.microversions import Feature, Version
from treeclaim.model.names import normalised_uuid
from treeclaim.store.operations import aggregate_names
from treeclaim.store.operations.providers.entries import write_part
from treeclaim.store.operations.providers.part_writer import GenerationRule, WriteRules

AGGREGATES: Shape = {"aggregates": [str], "resource_provider_generation": int}
_KIND = "names"
_MOST = 10_000


class NamesQuery(lists.ListQuery):
    """Filters of names."""

    uuid: Uuids = ()


class NamesBody(Body):
    """Names of aggregates; null to remove one."""

    names: Annotated[
        dict[DashedUuid, ShortText | None], Field(min_length=1, max_length=_MOST, fail_fast=True)
    ]


def _make_aggregates_schema(version: Version) -> Schema:
    uuids: Schema = {"type": "array", "items": UUID, "uniqueItems": True}
    if not version.has(Feature.AGGREGATE_GENERATION):
        return uuids
    return record({"aggregates": uuids} | GENERATION)


@operation(
    "GET /resource_providers/{uuid}/aggregates",
    policy="placement:resource_providers:aggregates:list",
    shows=AGGREGATES,
    since=Feature.AGGREGATES,
    checks_media_type_first=True,
)
def list_aggregates(call: Call) -> Answer:
    """Show the aggregates of a resource provider (section 1)."""
    with call.services.replica.borrow_forest() as forest:
        row = require_row(forest, call.arguments["uuid"])
        return _make_document(
            call,
            list(forest.links_of(parts.AGGREGATES.name, row)),
            forest.provider(row).generation,
        )


@operation(
    "PUT /resource_providers/{uuid}/aggregates",
    policy="placement:resource_providers:aggregates:update",
    shows=AGGREGATES,
    since=Feature.AGGREGATES,
    checks_media_type_first=True,
    body=VersionedSchema(_make_aggregates_schema),
    refusals=(GENERATION_CHANGED,),
)
def replace_aggregates(call: Call) -> Answer:
    """Replace the aggregates of a resource provider (section 2)."""
    body = read_provider_body(call)
    has_generation = call.has(Feature.AGGREGATE_GENERATION)
    aggregates = body["aggregates"] if has_generation else body
    expected_generation = int(body["resource_provider_generation"]) if has_generation else None
    written_provider = call.services.store.write(
        write_part,
        call.arguments["uuid"],
        parts.AGGREGATES,
        aggregates,
        expected_generation,
        rules=WriteRules(GenerationRule.ALWAYS if has_generation else GenerationRule.NEVER),
    )
    return _make_document(call, aggregates, written_provider.generation)


def _make_document(call: Call, aggregates: Sequence[str], generation: int) -> Answer:
    body: dict[str, object] = {"aggregates": aggregates}
    if call.has(Feature.AGGREGATE_GENERATION):
        body["resource_provider_generation"] = generation
    return body


@operation(
    "GET /treeclaim/aggregates/names",
    policy="placement:resource_providers:aggregates:list",
    shows={"names": {str: str}, "links": LINKS},
)
def list_aggregate_names(call: Call, query: NamesQuery) -> Answer:
    """List names of aggregates."""
    marker, limit = query.read_marker(_KIND), query.limit
    if marker and normalised_uuid(marker) != marker:
        raise query.make_marker_error()
    if query.uuid:
        named_uuids = [uuid.lower() for uuid in query.uuid]
        name_by_uuid = call.services.store.read(
            aggregate_names.load_aggregate_names, [uuid for uuid in named_uuids if uuid > marker]
        )
    else:
        name_by_uuid = call.services.store.read(aggregate_names.load_page, marker, limit + 1)
    names = dict(list(name_by_uuid.items())[:limit])
    next_after = list(names)[-1] if len(name_by_uuid) > limit else None
    return {"names": names, "links": lists.make_links(call, _KIND, next_after)}


@operation(
    "POST /treeclaim/aggregates/names",
    policy="treeclaim:aggregate_names:update",
)
def name_aggregates(call: Call, body: NamesBody) -> None:
    """Name aggregates, or remove their names."""
    names = {uuid.lower(): name for uuid, name in body.names.items()}
    call.services.store.write(aggregate_names.change_names, names)
