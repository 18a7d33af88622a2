# SPDX-License-Identifier: Apache-2.0
"""Allocations in bulk (contract page 99, section 2)."""

from typing import Annotated, Literal

from pydantic import Field

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import ShortText
from treeclaim.api.protocol.request.query_models import ClassNames, Membership, Time, Uuids
from treeclaim.api.protocol.request.schemas import HELD, TYPE_NAME, Shape
from treeclaim.api.resources.allocations import hold_terms
from treeclaim.api.resources.allocations.operations import KEPT, OWNED
from treeclaim.api.resources.extension import lists
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.consumers import ConsumerFilter, Page, load_consumer_page
from treeclaim.store.reading.holders import ConsumerDetails, load_details

_KIND = "consumers"


class ConsumersQuery(lists.ListQuery):
    """Filters of consumers, and whether their stored requests are included."""

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


CONSUMER: Shape = {"uuid": str, "allocations": HELD} | OWNED | KEPT


@operation(
    "GET /treeclaim/allocations",
    policy="placement:allocations:list",
    shows=lists.page_shape(_KIND, CONSUMER),
    refusals=(lists.unknown_class_refusal("resource_class"),),
)
def list_allocations_in_bulk(call: Call, query: ConsumersQuery) -> Answer:
    """List consumers in bulk, with everything that they hold."""
    consumer_filter = query.to_filter(ConsumerFilter, _KIND)
    has_requests = query.include is not None

    def read(transaction: ReadTransaction) -> tuple[Page, ConsumerDetails]:
        page = load_consumer_page(transaction, consumer_filter)
        uuids = [consumer["uuid"] for consumer in page[0]]
        return page, load_details(transaction, uuids, has_requests=has_requests)

    # Read before the snapshot, which therefore has everything up to it.
    cursor = call.services.store.cursor()
    (consumers, next_after), kept = call.services.store.read(read)
    for consumer in consumers:
        uuid = consumer["uuid"]
        consumer.update(hold_terms.render_terms(kept, uuid))
        if has_requests:
            consumer["request"] = kept.requests.get(uuid)
    return lists.page_reply(call, _KIND, consumers, cursor, next_after)
