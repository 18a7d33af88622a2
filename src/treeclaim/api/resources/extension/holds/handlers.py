# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/holds (contract page 100, section 1)."""

from collections.abc import Collection, Sequence

from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.allocations import keeping
from treeclaim.api.resources.extension import filters, paging
from treeclaim.api.resources.extension.holds import schemas
from treeclaim.model.extension import cursor_text
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import present_cursor
from treeclaim.store.operations.allocations.holds import change_terms, keep_requests_for
from treeclaim.store.reading.listed_holds import HoldFilter, HoldPage, page_of_holds

_KIND = "holds"


def list_holds(call: Call) -> Reply:
    """List a page of the holds that pass all filters, each with what it holds."""
    pairs = call.query()
    query = require_query(schemas.QUERY.at(call.version), pairs)
    wanted = HoldFilter(
        project_id=query.get("project_id"),
        drawable_by=query.get("drawable_by"),
        providers=filters.several(query.get("provider")),
        in_tree=filters.several(query.get("in_tree")),
        until_before=filters.time_of(query, "until_before"),
        after=paging.marker_of(query, _KIND),
        limit=paging.limit_of(query),
    )

    def read(transaction: ReadTransaction) -> tuple[str, HoldPage]:
        cursor = cursor_text.written(present_cursor(transaction))
        return cursor, page_of_holds(transaction, wanted)

    cursor, page = call.services.store.read(read)
    return Reply(
        body={
            "holds": page.holds,
            "cursor": cursor,
            "links": paging.links(call.link(schemas.PATH), pairs, _KIND, page.next_after),
        },
        modified_at=now(),
    )


def change_holds(call: Call) -> Reply:
    """Change the terms of holds that are named; a keep-alive does not race with draws."""
    given = call.json()["holds"]
    changes = {uuid: keeping.terms_of(call, terms) for uuid, terms in given.items()}
    return _updated(given, call.services.store.write(change_terms, changes))


def keep_requests(call: Call) -> Reply:
    """Keep or forget the requests of consumers."""
    given = call.json()["requests"]
    named = {uuid: queries for uuid, queries in given.items() if queries is not None}
    keeping.require_valid(call, named, {uuid: f"requests.{uuid}" for uuid in named})
    return _updated(given, call.services.store.write(keep_requests_for, given))


def _updated(given: Collection[str], unknown: Sequence[str]) -> Reply:
    return Reply(body={"updated": len(given) - len(unknown), "unknown": list(unknown)})
