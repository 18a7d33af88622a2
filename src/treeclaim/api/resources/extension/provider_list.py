# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/providers (contract page 99, section 1)."""

from functools import partial
from typing import Annotated, Literal, NamedTuple

import orjson
from pydantic import BeforeValidator, Field, WithJsonSchema

from treeclaim.api.protocol.errors import bad_request
from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.query_models import Amounts, Uuids
from treeclaim.api.protocol.request.schemas import AMOUNTS, Shape, list_pattern, text
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.extension.provider_batch import PART_SHAPES
from treeclaim.forest.listing.selection import Page, select_page, select_rows
from treeclaim.forest.table.forest import Forest
from treeclaim.model.changes import Cursor, write_cursor
from treeclaim.model.parts import INVENTORIES, SHOWN_PARTS
from treeclaim.model.request import ProviderQuery
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.allocations import load_allocations_by_provider

_ALLOCATIONS = "allocations"
_INCLUDES = {
    INVENTORIES.name: INVENTORIES.read_rule,
    "usages": "placement:resource_providers:usages",
    **{part.name: part.read_rule for part in SHOWN_PARTS},
    _ALLOCATIONS: "placement:resource_providers:allocations:list",
}
"""Values of `include`, and the policy rules of the corresponding URLs (contract page 98, section 1)."""

_KIND = "providers"

_MOST_WITH_ALLOCATIONS = 1_000
"""Most providers of a page with allocations: a host may have hundreds of allocations."""


class ProvidersQuery(lists.SelectionQuery):
    """Filters of providers, and the included parts."""

    name: str | None = None
    uuid: Uuids = ()
    resources: Amounts = Field(default_factory=dict)
    include: Annotated[
        frozenset[Literal[tuple(_INCLUDES)]],  # type: ignore[valid-type]
        Field(strict=False),
        BeforeValidator(lambda value: value.split(",")),
        WithJsonSchema(text(list_pattern(f"({'|'.join(_INCLUDES)})"))),
    ] = frozenset()

    def page(self, forest: Forest) -> Page:
        """Return the rows of the page."""
        uuids = frozenset(self.uuid) if self.uuid else None
        selection = ProviderQuery(self.name or None, uuids, self.conditions, self.resources)
        return select_page(
            forest, select_rows(forest, selection), self.read_id_marker(_KIND), self.limit
        )


_PROVIDER: Shape = {
    "uuid": str,
    "name": str,
    "generation": int,
    "parent_provider_uuid": str | None,
    "root_provider_uuid": str,
    "usages?": AMOUNTS,
    **{f"{part.name}?": shape for part, shape in PART_SHAPES.items()},
    f"{_ALLOCATIONS}?": {str: {"resources": AMOUNTS, "consumer_generation": int}},
}


_BATCH_SIZE = 1_000
"""Providers whose texts are prepared in one turn at the Forest: 10 ms."""

_BATCH_SIZE_WITH_ATTRIBUTES = 100
"""Providers of a turn if they have attributes: 10 ms if each provider has 64 attributes."""

_MOST_COPIED_ROWS = 4_096
"""Most copied rows of a turn; it limits the providers of a turn if each provider has different classes."""

_MOST_TURNS = 120
"""Most turns for preparing texts; texts that change faster are prepared in the final turn."""


@operation(
    "GET /treeclaim/providers",
    policy="placement:resource_providers:list",
    shows=lists.make_page_shape(_KIND, _PROVIDER),
    refusals=(lists.refuse_unknown_class("resources"),),
)
def list_providers_in_bulk(call: Call, query: ProvidersQuery) -> Answer:
    """List resource providers in bulk, with their parts."""
    _require_allowed(call, query)
    _prepare(call, query)
    replica = call.services.replica
    if _ALLOCATIONS in query.include:
        page = replica.read_consistently(partial(_read_page, call, query), _add_allocations)
    else:
        with replica.borrow_forest() as forest:
            page = _read_page(call, query, forest, replica.follower.cursor)
        call.deadline.check()
    links = lists.make_links(call, _KIND, page.next_after)
    tail = orjson.dumps({"cursor": page.cursor, "links": links})
    texts = [b"%b}" % b"},".join(page.texts)] if page.texts else []
    body = b"".join([b'{"providers":[', *texts, b"],", tail[1:]])
    return [body]


def _require_allowed(call: Call, query: ProvidersQuery) -> None:
    for name, rule in _INCLUDES.items():
        if name in query.include:
            call.require_allowed(rule)
    if _ALLOCATIONS in query.include and query.limit > _MOST_WITH_ALLOCATIONS:
        raise bad_request(f"Invalid limit: {query.limit} is more than {_MOST_WITH_ALLOCATIONS}.")


def _prepare(call: Call, query: ProvidersQuery) -> None:
    """Prepare the texts of the page in several turns at the Forest, which other requests need too."""
    replica = call.services.replica
    for _ in range(_MOST_TURNS):
        call.deadline.check()
        with replica.borrow_forest() as forest:
            stale_rows = replica.listing.stale(forest, query.page(forest).rows)
            is_short = forest.attributes.is_empty
            batch_size = _BATCH_SIZE if is_short else _BATCH_SIZE_WITH_ATTRIBUTES
            rows = forest.with_few_groups(stale_rows[:batch_size], _MOST_COPIED_ROWS)
            replica.listing.prepare(forest, rows)
        if len(rows) == len(stale_rows):
            return


class _PageSnapshot(NamedTuple):
    """A page of providers at one moment.

    Attributes:
        ids: Ids of the providers in the database.
        texts: JSON of each provider, without the closing brace.
        cursor: The moment, as a cursor of the change feed.
        next_after: Id after which the next page begins; None for the last page.
    """

    ids: list[int]
    texts: list[bytes]
    cursor: str
    next_after: int | None


def _read_page(call: Call, query: ProvidersQuery, forest: Forest, cursor: Cursor) -> _PageSnapshot:
    page = query.page(forest)
    return _PageSnapshot(
        forest.id.values[page.rows].tolist(),
        call.services.replica.listing.each(forest, page.rows, query.include),
        write_cursor(cursor),
        page.next_after,
    )


def _add_allocations(transaction: ReadTransaction, page: _PageSnapshot) -> _PageSnapshot:
    allocations_by_provider = load_allocations_by_provider(transaction, page.ids)
    texts = [
        b'%b,"allocations":%b' % (text, orjson.dumps(allocations_by_provider.get(provider_id, {})))
        for provider_id, text in zip(page.ids, page.texts, strict=True)
    ]
    return page._replace(texts=texts)
