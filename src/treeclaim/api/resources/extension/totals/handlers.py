# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/totals (contract page 99, section 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from treeclaim.api.protocol.operations import Call, Reply
from treeclaim.api.protocol.request.validation import require_query
from treeclaim.api.protocol.timestamps import now
from treeclaim.api.resources.extension import filters, paging
from treeclaim.api.resources.extension.totals import schemas
from treeclaim.forest.domains.filters import require_known_classes
from treeclaim.forest.listing.parts import By
from treeclaim.forest.listing.selection import meeting
from treeclaim.forest.listing.totals import Summable, summable
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns
from treeclaim.model.changes import Cursor
from treeclaim.model.extension import cursor_text
from treeclaim.model.microversions import ExtensionFeature
from treeclaim.model.request import ProviderConditions
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.held import held_everywhere


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks for.

    Attributes:
        conditions: Which providers count.
        classes: Which of their inventories; None for all.
        by: What the parts are; None for no parts.
        after: Key behind which the page of parts begins.
        limit: How many parts at most.
    """

    conditions: ProviderConditions
    classes: tuple[str, ...] | None
    by: By | None
    after: str
    limit: int


def show_totals(call: Call) -> Reply:
    """Sum up the inventories of the providers that pass all filters."""
    pairs = call.query()
    query = require_query(schemas.QUERY.at(call.version), pairs)
    asked = _asked(call, pairs, query)

    def of_forest(forest: Forest, cursor: Cursor) -> tuple[Summable, str]:
        return _summable(forest, asked), cursor_text.written(cursor)

    def with_held(
        transaction: ReadTransaction, found: tuple[Summable, str]
    ) -> tuple[Summable, str]:
        summable, cursor = found
        return summable.with_held(HeldColumns.of(held_everywhere(transaction))), cursor

    replica = call.services.replica
    with filters.classes_named_by("resource_class"):
        if call.version.brings(ExtensionFeature.HOLDS):
            summable, cursor = replica.at_one_moment(of_forest, with_held)
        else:
            with replica.current() as forest:
                summable, cursor = of_forest(forest, replica.cursor)
    call.deadline.look()
    body: dict[str, Any] = {"totals": summable.totals()}
    parts = summable.parts(call.deadline.look)
    if parts is not None:
        body["parts"] = parts.parts
    next_after = None if parts is None else parts.next_after
    kind = query.get("by", "")
    body |= {
        "cursor": cursor,
        "links": paging.links(call.link(schemas.PATH), pairs, kind, next_after),
    }
    return Reply(body=body, modified_at=now())


def _asked(call: Call, pairs: list[tuple[str, str]], query: Mapping[str, str]) -> _Asked:
    by = By(query["by"]) if "by" in query else None
    after = paging.marker_of(query, query.get("by", ""))
    if by is By.TREE:
        after = str(paging.number_marker_of(query, by))
    return _Asked(
        filters.conditions_of(call, pairs, query),
        filters.several(query["resource_class"]) if "resource_class" in query else None,
        by,
        after,
        paging.limit_of(query),
    )


def _summable(forest: Forest, asked: _Asked) -> Summable:
    rows = meeting(forest, asked.conditions)
    require_known_classes(forest, asked.classes or ())
    return summable(forest, rows, asked.classes, asked.by, after=asked.after, limit=asked.limit)
