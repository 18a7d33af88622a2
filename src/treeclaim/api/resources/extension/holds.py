# SPDX-License-Identifier: Apache-2.0
"""/treeclaim/holds and /treeclaim/requests (contract page 100)."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any

from pydantic import Field

from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    Forms,
    Reply,
    VersionedSchema,
    operation,
)
from treeclaim.api.protocol.request.bodies import Alternatives, Body, BodyReader, ConsumerKey
from treeclaim.api.protocol.request.schemas import (
    HELD,
    INTEGER,
    LINKS,
    SHORT_TEXT,
    STRING,
    STRINGS,
    Schema,
    record,
)
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK, require_query
from treeclaim.api.protocol.texts import now
from treeclaim.api.resources.allocations import hold_terms, kept_requests
from treeclaim.api.resources.allocations.hold_terms import TermsBody
from treeclaim.api.resources.allocations.schemas import SHOWN_HOLD
from treeclaim.api.resources.extension import lists
from treeclaim.model.extension import cursor_text
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.feed.unread import present_cursor
from treeclaim.store.operations.allocations.holds import change_terms
from treeclaim.store.operations.allocations.kept_requests import keep_requests_for
from treeclaim.store.reading.listed_holds import HoldFilter, HoldPage, page_of_holds

PATH = "/treeclaim/holds"


_PARAMETERS: dict[str, Schema] = {
    "project_id": SHORT_TEXT,
    "drawable_by": SHORT_TEXT,
    "provider": lists.UUIDS,
    "in_tree": lists.UUIDS,
    "until_before": lists.TIME,
}

QUERY = VersionedSchema(record({}, _PARAMETERS | lists.PARAMETERS))

_MANY: Any = Field(min_length=1, max_length=1_000)


class HoldsBody(Body):
    """Terms of holds that change."""

    holds: Annotated[dict[ConsumerKey, TermsBody], _MANY]


class RequestsBody(Body):
    """The requests of consumers; null for none."""

    requests: Annotated[dict[ConsumerKey, Alternatives | None], _MANY]


HOLDS = Answer(
    body=record(
        {
            "holds": {
                "type": "array",
                "items": record(
                    {
                        "uuid": STRING,
                        "project_id": STRING,
                        "user_id": STRING,
                        "consumer_generation": INTEGER,
                        "allocations": HELD,
                        "hold": SHOWN_HOLD,
                    }
                ),
            },
            "cursor": STRING,
            "links": LINKS,
        }
    )
)
"""A page of holds."""

UPDATED = Answer(body=record({"updated": INTEGER, "unknown": STRINGS}), dated=False)
"""The number of named consumers that exist, and those that do not."""


_KIND = "holds"


@operation(
    "GET /treeclaim/holds",
    policy="treeclaim:holds:list",
    answers=(HOLDS,),
    query=QUERY,
    forms=Forms(query={"until_before": {"type": "string", "format": "date-time"}}),
    needs_opt_in=True,
    media_first=True,
)
def list_holds(call: Call) -> Reply:
    """List holds, with what they hold and what is drawn from them."""
    pairs = call.query()
    query = require_query(QUERY.at(call.version), pairs)
    hold_filter = HoldFilter(
        project_id=query.get("project_id"),
        drawable_by=query.get("drawable_by"),
        providers=lists.several(query.get("provider")),
        in_tree=lists.several(query.get("in_tree")),
        until_before=lists.time_of(query, "until_before"),
        after=lists.marker_of(query, _KIND),
        limit=lists.limit_of(query),
    )

    def read(transaction: ReadTransaction) -> tuple[str, HoldPage]:
        cursor = cursor_text.write_cursor(present_cursor(transaction))
        return cursor, page_of_holds(transaction, hold_filter)

    cursor, page = call.services.store.read(read)
    return Reply(
        body={
            "holds": page.holds,
            "cursor": cursor,
            "links": lists.links(call.link(PATH), pairs, _KIND, page.next_after),
        },
        modified_at=now(),
    )


@operation(
    "POST /treeclaim/holds",
    policy="treeclaim:holds:manage",
    answers=(UPDATED,),
    body=BodyReader(HoldsBody),
    most_values=MOST_VALUES_IN_BULK,
    needs_opt_in=True,
)
def change_holds(call: Call) -> Reply:
    """Change terms of holds without changing their generations."""
    body: HoldsBody = call.json()
    changes = {uuid: hold_terms.terms_of(call, hold.terms) for uuid, hold in body.holds.items()}
    return _update(changes, call.services.store.write(change_terms, changes))


@operation(
    "POST /treeclaim/requests",
    policy="treeclaim:requests:update",
    answers=(UPDATED,),
    body=BodyReader(RequestsBody),
    most_values=MOST_VALUES_IN_BULK,
    needs_opt_in=True,
)
def keep_requests(call: Call) -> Reply:
    """Store the requests by which consumers were placed."""
    body: RequestsBody = call.json()
    named = {uuid: queries for uuid, queries in body.requests.items() if queries is not None}
    kept_requests.require_valid(call, named, {uuid: f"requests.{uuid}" for uuid in named})
    return _update(body.requests, call.services.store.write(keep_requests_for, body.requests))


def _update(consumers: Collection[str], unknown: Sequence[str]) -> Reply:
    return Reply(body={"updated": len(consumers) - len(unknown), "unknown": list(unknown)})
