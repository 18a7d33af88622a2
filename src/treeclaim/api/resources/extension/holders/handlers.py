# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/allocations (contract page 99, section 2)."""

from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.request import parameters
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.allocations import keeping
from treeclaim.api.resources.extension import filters, paging
from treeclaim.api.resources.extension.holders import schemas
from treeclaim.model.extension import cursor_text
from treeclaim.model.microversions import ExtensionFeature
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import present_cursor
from treeclaim.store.reading.holdings_of_many import (
    ConsumerFilter,
    ConsumerPage,
    RecordFilter,
    of_consumers,
)
from treeclaim.store.reading.kept import Kept, kept_with

_KIND = "consumers"


def list_allocations_in_bulk(call: Call) -> Reply:
    """List a page of the consumers that pass all filters, each with all that it holds."""
    pairs = call.query()
    wanted = _wanted(call, pairs)
    has_requests = ("include", schemas.REQUESTS) in pairs

    def read(transaction: ReadTransaction) -> tuple[str, ConsumerPage, Kept | None]:
        cursor = cursor_text.written(present_cursor(transaction))
        page = of_consumers(transaction, wanted)
        if not call.version.brings(ExtensionFeature.HOLDS):
            return cursor, page, None
        uuids = [consumer["uuid"] for consumer in page.consumers]
        return cursor, page, kept_with(transaction, uuids, has_requests=has_requests)

    with filters.classes_named_by("resource_class"):
        cursor, page, kept = call.services.store.read(read)
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
            "links": paging.links(call.link(schemas.PATH), pairs, _KIND, page.next_after),
        },
        modified_at=now(),
    )


def _wanted(call: Call, pairs: list[tuple[str, str]]) -> ConsumerFilter:
    query = require_query(schemas.QUERY.at(call.version), pairs)
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
        after=paging.marker_of(query, _KIND),
        limit=paging.limit_of(query),
    )
