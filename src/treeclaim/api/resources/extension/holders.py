# SPDX-License-Identifier: Apache-2.0
"""Allocations in bulk (contract page 99, section 2)."""

from treeclaim.api.protocol.operations import Answer, Call, Forms, Operation, Reply, Versioned
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    INTEGER,
    LINKS,
    SHORT_TEXT,
    STRING,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.request.wording import Schema
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.allocations import keeping
from treeclaim.api.resources.allocations.schemas import DRAWN_FROM, HOLD_OR_NULL
from treeclaim.api.resources.extension import filters, paging
from treeclaim.model.extension import cursor_text
from treeclaim.model.microversions import ExtensionFeature, Version
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import present_cursor
from treeclaim.store.reading.consumers import ConsumerDetails, details_of
from treeclaim.store.reading.holdings_of_many import (
    ConsumerFilter,
    ConsumerPage,
    RecordFilter,
    of_consumers,
)

PATH = "/treeclaim/allocations"

REQUESTS = "requests"
"""What may be included: the requests that consumers were placed by."""


def query(version: Version) -> Schema:
    """Return the schema of the query."""
    parameters: dict[str, Schema] = {
        "consumer": filters.UUIDS,
        "project_id": SHORT_TEXT,
        "user_id": SHORT_TEXT,
        "consumer_type": {"type": "string", "pattern": "^([A-Z0-9_]{1,255}|unknown)$"},
        "provider": filters.UUIDS,
        "in_tree": filters.UUIDS,
        "member_of": STRING,
        "resource_class": filters.CLASSES,
    }
    if version.brings(ExtensionFeature.HOLDS):
        parameters["include"] = {"type": "string", "enum": [REQUESTS]}
    if version.brings(ExtensionFeature.PLANNING):
        parameters["created_since"] = filters.TIME
    return record({}, parameters | paging.PARAMETERS)


QUERY = Versioned(query)


CONSUMER = record(
    {
        "uuid": STRING,
        "allocations": mapping(".*", record({"generation": INTEGER, "resources": AMOUNTS})),
        "project_id": STRING,
        "user_id": STRING,
        "consumer_generation": INTEGER,
        "consumer_type": STRING,
    },
    {
        "hold": HOLD_OR_NULL,
        "drawn_from": DRAWN_FROM,
        "request": {"type": ["array", "null"], "items": STRING},
    },
)

CONSUMERS = Answer(
    body=record(
        {"consumers": {"type": "array", "items": CONSUMER}, "cursor": STRING, "links": LINKS}
    )
)
"""A page of consumers."""


_KIND = "consumers"


def list_allocations_in_bulk(call: Call) -> Reply:
    """List a page of the consumers that pass all filters, each with all that it holds."""
    pairs = call.query()
    wanted = _wanted(call, pairs)
    has_requests = ("include", REQUESTS) in pairs

    def read(transaction: ReadTransaction) -> tuple[str, ConsumerPage, ConsumerDetails | None]:
        cursor = cursor_text.written(present_cursor(transaction))
        page = of_consumers(transaction, wanted)
        if not call.version.brings(ExtensionFeature.HOLDS):
            return cursor, page, None
        uuids = [consumer["uuid"] for consumer in page.consumers]
        return cursor, page, details_of(transaction, uuids, has_requests=has_requests)

    with filters.classes_named_by("resource_class"):
        if call.version.brings(ExtensionFeature.HOLDS):
            cursor, page, kept = call.services.store.read(read)
        else:
            cursor, page, kept = call.services.store.read_from_standby(read)
    if kept is not None:
        for consumer in page.consumers:
            uuid = consumer["uuid"]
            consumer.update(keeping.shown(kept, uuid))
            if has_requests:
                consumer["request"] = kept.requests.get(uuid)
    return Reply(
        body={
            "consumers": page.consumers,
            "cursor": cursor,
            "links": paging.links(call.link(PATH), pairs, _KIND, page.next_after),
        },
        modified_at=now(),
    )


def _wanted(call: Call, pairs: list[tuple[str, str]]) -> ConsumerFilter:
    query = require_query(QUERY.at(call.version), pairs)
    membership = parameters.member_of(
        [value for name, value in pairs if name == "member_of"], call.version
    )
    return ConsumerFilter(
        records=RecordFilter(
            providers=filters.several(query.get("provider")),
            in_tree=filters.several(query.get("in_tree")),
            member_of=membership.member_of,
            forbidden_aggregates=membership.forbidden,
            classes=filters.several(query.get("resource_class")),
        ),
        consumers=[uuid.lower() for uuid in filters.several(query.get("consumer"))],
        project_id=query.get("project_id"),
        user_id=query.get("user_id"),
        consumer_type=query.get("consumer_type"),
        created_since=filters.time_of(query, "created_since"),
        after=paging.marker_of(query, _KIND),
        limit=paging.limit_of(query),
    )


OPERATIONS = (
    Operation(
        "GET",
        PATH,
        list_allocations_in_bulk,
        policy="placement:allocations:list",
        summary="List consumers in bulk, with everything that they hold.",
        answers=(CONSUMERS,),
        query=QUERY,
        forms=Forms(
            query={
                "member_of": filters.SELECTION["member_of"],
                "created_since": {"type": "string", "format": "date-time"},
            }
        ),
        extension=ExtensionFeature.ORDER_AND_REPORTS,
        media_first=True,
    ),
)
