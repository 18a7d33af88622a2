# SPDX-License-Identifier: Apache-2.0
"""Names of aggregates, which people see beside their uuids; nothing else depends on them."""

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import EMPTY, Answer, Call, Operation, Reply, Versioned
from treeclaim.api.protocol.request.schemas import (
    DASHED_UUID,
    LINKS,
    SHORT_TEXT,
    STRING,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK, require_query
from treeclaim.api.protocol.texts import quoted
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.extension import filters, paging
from treeclaim.model.microversions import ExtensionFeature
from treeclaim.model.names import normalised_uuid
from treeclaim.store.operations import aggregate_names as store

_PATH = "/treeclaim/aggregates/names"
_KIND = "names"
_MOST = 10_000


QUERY = Versioned(record({}, {"uuid": filters.UUIDS} | paging.PARAMETERS))

NAMES = Answer(body=record({"names": mapping(".*", STRING), "links": LINKS}))
"""A page of names, by uuid of an aggregate."""


_NAME = SHORT_TEXT | {"type": ["string", "null"]}
_GIVEN = mapping(str(DASHED_UUID["pattern"]), _NAME, least=1) | {"maxProperties": _MOST}


def list_aggregate_names(call: Call) -> Reply:
    """List a page of the names of aggregates, or those of some of them."""
    pairs = call.query()
    query = require_query(QUERY.at(call.version), pairs)
    after, limit = paging.marker_of(query, _KIND), paging.limit_of(query)
    if after and normalised_uuid(after) != after:
        raise bad_request(
            f"Invalid marker: {quoted(query['marker'])} is none that this list gave."
        )
    if "uuid" in query:
        wanted = [normalised_uuid(uuid) or uuid for uuid in filters.several(query["uuid"])]
        found = call.services.store.read(store.named, [uuid for uuid in wanted if uuid > after])
    else:
        found = call.services.store.read(store.page, after, limit + 1)
    names = dict(list(found.items())[:limit])
    next_after = list(names)[-1] if len(found) > limit else None
    links = paging.links(call.link(_PATH), pairs, _KIND, next_after)
    return Reply(body={"names": names, "links": links}, modified_at=now())


def name_aggregates(call: Call) -> Reply:
    """Name aggregates, or take their names away; all or none, of one spelled twice the last."""
    names = {uuid.lower(): name for uuid, name in call.json()["names"].items()}
    call.services.store.write(store.change, names)
    return Reply(EMPTY.status)


OPERATIONS = (
    Operation(
        "GET",
        _PATH,
        list_aggregate_names,
        policy="placement:resource_providers:aggregates:list",
        summary="List names of aggregates.",
        answers=(NAMES,),
        query=QUERY,
        extension=ExtensionFeature.HOLDS,
    ),
    Operation(
        "POST",
        _PATH,
        name_aggregates,
        policy="treeclaim:aggregate_names:update",
        summary="Name aggregates, or take their names away.",
        answers=(EMPTY,),
        body=Versioned(record({"names": _GIVEN})),
        most_values=MOST_VALUES_IN_BULK,
        extension=ExtensionFeature.HOLDS,
    ),
)
