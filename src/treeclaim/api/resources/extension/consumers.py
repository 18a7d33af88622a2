# SPDX-License-Identifier: Apache-2.0
"""Lists of consumers and holds, and changes of holds and stored requests (contract pages 99 and 100)."""

from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import Alternatives, Body, ConsumerKey, ShortText
from treeclaim.api.protocol.request.query_models import ClassNames, Membership, Time, Uuids
from treeclaim.api.protocol.request.schemas import ALLOCATIONS, TYPE_NAME, Shape
from treeclaim.api.resources.allocations import hold_terms, kept_requests
from treeclaim.api.resources.allocations.hold_terms import TermsBody
from treeclaim.api.resources.allocations.operations import DETAILS, OWNER, SHOWN_HOLD
from treeclaim.api.resources.extension import lists
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.operations.allocations.holds import change_terms
from treeclaim.store.operations.allocations.kept_requests import change_requests
from treeclaim.store.reading.consumers import ConsumerFilter, Page, load_consumer_page
from treeclaim.store.reading.holders import ConsumerDetails, load_consumer_details
from treeclaim.store.reading.holds import HoldFilter, load_hold_page

_CONSUMERS, _HOLDS = "consumers", "holds"


class ConsumersQuery(lists.ListQuery):
    """Filters of consumers, and the included details."""

    consumer: Uuids = ()
    project_id: ShortText | None = None
    user_id: ShortText | None = None
    consumer_type: Annotated[str, Field(pattern=TYPE_NAME)] | None = None
    provider: Uuids = ()
    in_tree: Uuids = ()
    member_of: Membership = ProviderConditions()
    resource_class: ClassNames = ()
    include: Literal["requests"] | None = None
    created_since: Time | None = None


_CONSUMER: Shape = {"uuid": str, "allocations": ALLOCATIONS} | OWNER | DETAILS


@operation(
    "GET /treeclaim/allocations",
    policy="placement:allocations:list",
    shows=lists.make_page_shape(_CONSUMERS, _CONSUMER),
    refusals=(lists.refuse_unknown_class("resource_class"),),
)
def list_allocations_in_bulk(call: Call, query: ConsumersQuery) -> Answer:
    """List consumers in bulk, with their allocations."""
    consumer_filter = query.to_filter(ConsumerFilter, _CONSUMERS)
    has_requests = query.include is not None

    def read(transaction: ReadTransaction) -> tuple[Page, ConsumerDetails]:
        page = load_consumer_page(transaction, consumer_filter)
        uuids = [consumer["uuid"] for consumer in page[0]]
        return page, load_consumer_details(transaction, uuids, has_requests=has_requests)

    # The cursor is read first, so that the snapshot contains every change before it.
    cursor = call.services.store.load_cursor()
    (consumers, next_after), details = call.services.store.read(read)
    for consumer in consumers:
        uuid = consumer["uuid"]
        consumer.update(hold_terms.render_terms(details, uuid))
        if has_requests:
            consumer["request"] = details.requests.get(uuid)
    return lists.make_page(call, _CONSUMERS, consumers, cursor, next_after)


class HoldListQuery(lists.ListQuery):
    """Filters of holds."""

    project_id: ShortText | None = None
    drawable_by: ShortText | None = None
    provider: Uuids = ()
    in_tree: Uuids = ()
    until_before: Time | None = None


_LENGTH: Any = Field(min_length=1, max_length=1_000)


class HoldsBody(Body):
    """Changed terms of holds."""

    holds: Annotated[dict[ConsumerKey, TermsBody], _LENGTH]


class RequestsBody(Body):
    """The requests of consumers; null removes a stored request."""

    requests: Annotated[dict[ConsumerKey, Alternatives | None], _LENGTH]


_HOLD: Shape = {
    "uuid": str,
    "project_id": str,
    "user_id": str,
    "consumer_generation": int,
    "allocations": ALLOCATIONS,
    "hold": SHOWN_HOLD,
}

UPDATED: Shape = {"updated": int, "unknown": [str]}
"""The number of updated consumers, and the unknown consumers."""


@operation(
    "GET /treeclaim/holds",
    policy="treeclaim:holds:list",
    shows=lists.make_page_shape(_HOLDS, _HOLD),
)
def list_holds(call: Call, query: HoldListQuery) -> Answer:
    """List holds, with their allocations and drawn amounts."""
    hold_filter = query.to_filter(HoldFilter, _HOLDS)
    # The cursor is read first, so that the snapshot contains every change before it.
    cursor = call.services.store.load_cursor()
    holds, next_after = call.services.store.read(load_hold_page, hold_filter)
    return lists.make_page(call, _HOLDS, holds, cursor, next_after)


@operation(
    "POST /treeclaim/holds",
    policy="treeclaim:holds:manage",
    shows=UPDATED,
    has_cache_headers=False,
)
def change_holds(call: Call, body: HoldsBody) -> Answer:
    """Change terms of holds without changing their generations."""
    changes = {uuid: hold_terms.read_terms(call, terms) for uuid, terms in body.holds.items()}
    return _make_reply(changes, call.services.store.write(change_terms, changes))


@operation(
    "POST /treeclaim/requests",
    policy="treeclaim:requests:update",
    shows=UPDATED,
    has_cache_headers=False,
)
def keep_requests(call: Call, body: RequestsBody) -> Answer:
    """Store the requests by which consumers were placed."""
    named_requests = {
        uuid: queries for uuid, queries in body.requests.items() if queries is not None
    }
    kept_requests.require_valid(
        call, named_requests, {uuid: f"requests.{uuid}" for uuid in named_requests}
    )
    return _make_reply(body.requests, call.services.store.write(change_requests, body.requests))


def _make_reply(consumers: Collection[str], unknown_consumers: Sequence[str]) -> Answer:
    return {"updated": len(consumers) - len(unknown_consumers), "unknown": list(unknown_consumers)}
