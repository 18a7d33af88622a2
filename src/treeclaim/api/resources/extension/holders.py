# SPDX-License-Identifier: Apache-2.0
"""Allocations in bulk (contract page 99, section 2)."""

from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    Forms,
    Reply,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.schemas import (
    HELD,
    LINKS,
    SHORT_TEXT,
    STRING,
    TYPE_NAME,
    Schema,
    record,
)
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.allocations import hold_terms
from treeclaim.api.resources.allocations.schemas import KEPT, OWNED
from treeclaim.api.resources.extension import lists
from treeclaim.model.extension import cursor_text
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
"""Values of `include`: the requests that consumers were placed by."""


def query() -> Schema:
    """Return the schema of the query."""
    parameters: dict[str, Schema] = {
        "consumer": lists.UUIDS,
        "project_id": SHORT_TEXT,
        "user_id": SHORT_TEXT,
        "consumer_type": {"type": "string", "pattern": TYPE_NAME},
        "provider": lists.UUIDS,
        "in_tree": lists.UUIDS,
        "member_of": STRING,
        "resource_class": lists.CLASSES,
        "include": {"type": "string", "enum": [REQUESTS]},
        "created_since": lists.TIME,
    }
    return record({}, parameters | lists.PARAMETERS)


QUERY = VersionedSchema(query())


CONSUMER = record({"uuid": STRING, "allocations": HELD} | OWNED, KEPT)

CONSUMERS = Answer(
    body=record(
        {"consumers": {"type": "array", "items": CONSUMER}, "cursor": STRING, "links": LINKS}
    )
)
"""A page of consumers."""


_KIND = "consumers"


@operation(
    "GET /treeclaim/allocations",
    policy="placement:allocations:list",
    answers=(CONSUMERS,),
    query=QUERY,
    forms=Forms(
        query={
            "member_of": lists.SELECTION["member_of"],
            "created_since": {"type": "string", "format": "date-time"},
        }
    ),
    needs_opt_in=True,
    media_first=True,
)
def list_allocations_in_bulk(call: Call) -> Reply:
    """List consumers in bulk, with everything that they hold."""
    pairs = call.query()
    consumer_filter = _consumer_filter(call, pairs)
    has_requests = ("include", REQUESTS) in pairs

    def read(transaction: ReadTransaction) -> tuple[str, ConsumerPage, ConsumerDetails]:
        cursor = cursor_text.write_cursor(present_cursor(transaction))
        page = of_consumers(transaction, consumer_filter)
        uuids = [consumer["uuid"] for consumer in page.consumers]
        return cursor, page, details_of(transaction, uuids, has_requests=has_requests)

    with lists.classes_named_by("resource_class"):
        cursor, page, kept = call.services.store.read(read)
    for consumer in page.consumers:
        uuid = consumer["uuid"]
        consumer.update(hold_terms.shown(kept, uuid))
        if has_requests:
            consumer["request"] = kept.requests.get(uuid)
    return Reply(
        body={
            "consumers": page.consumers,
            "cursor": cursor,
            "links": lists.links(call.link(PATH), pairs, _KIND, page.next_after),
        },
        modified_at=now(),
    )


def _consumer_filter(call: Call, pairs: list[tuple[str, str]]) -> ConsumerFilter:
    query = require_query(QUERY.at(call.version), pairs)
    membership = parameters.member_of(
        [value for name, value in pairs if name == "member_of"], call.version
    )
    return ConsumerFilter(
        records=RecordFilter(
            providers=lists.several(query.get("provider")),
            in_tree=lists.several(query.get("in_tree")),
            member_of=membership.member_of,
            forbidden_aggregates=membership.forbidden,
            classes=lists.several(query.get("resource_class")),
        ),
        consumers=[uuid.lower() for uuid in lists.several(query.get("consumer"))],
        project_id=query.get("project_id"),
        user_id=query.get("user_id"),
        consumer_type=query.get("consumer_type"),
        created_since=lists.time_of(query, "created_since"),
        after=lists.marker_of(query, _KIND),
        limit=lists.limit_of(query),
    )
