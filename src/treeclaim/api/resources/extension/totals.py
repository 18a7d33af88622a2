# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/totals (contract page 99, section 3)."""

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import orjson
from pydantic import Field

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.query_models import ClassNames
from treeclaim.api.protocol.request.schemas import LINKS, Shape
from treeclaim.api.resources.candidates.operations import start_search
from treeclaim.api.resources.candidates.queries import MixReader, QueryParser
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.planning.assumptions import (
    ASSUMED,
    Assumptions,
    QuestionBody,
    read_assumptions,
)
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_classes
from treeclaim.forest.listing.selection import select_by_conditions
from treeclaim.forest.listing.totals import (
    SUMS,
    GroupKind,
    GroupPage,
    InventoryAmounts,
    find_groups,
)
from treeclaim.forest.order.mixes.mix_room import compute_stranded
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import include_consumption
from treeclaim.model.changes import write_cursor
from treeclaim.model.extension.planning import NO_ASSUMPTIONS, Mix
from treeclaim.replica.planning import question_under
from treeclaim.replica.question import HoldsQuery, PendingAnswer, Question


class TotalsQuery(lists.SelectionQuery):
    """Filters of inventories, the kind of the parts, and a mix."""

    resource_class: ClassNames = ()
    by: Annotated[GroupKind, Field(strict=False)] | None = None
    mix: str | None = None


class TotalsBody(QuestionBody):
    """A body that must have assumptions."""

    given: Assumptions


_SUMS: Shape = {str: dict.fromkeys(SUMS, int) | {"held?": int, "stranded?": int}}

_TOTALS: Shape = {
    "totals": _SUMS,
    "cursor": str,
    "links": LINKS,
    "parts?": [{"uuid": str | None, "name": str | None, "totals": _SUMS}],
}


def _read_question(call: Call, query: TotalsQuery) -> Question:
    """Return the question for sums; raise a 400 for an invalid marker, or an unknown mix."""
    marker = query.read_marker(query.by or "")
    if query.by is GroupKind.TREE:
        marker = str(query.read_id_marker(query.by))
    mix = None
    if query.mix is not None:
        place = "Invalid query string parameters: 'mix'"
        mix = MixReader(call, call.deadline.check).require(query.mix, place)

    def sum_up(forest: Forest, reads: Iterator[Any], budget: Budget) -> PendingAnswer:
        cursor = write_cursor(next(reads))
        rows = select_by_conditions(forest, query.conditions)
        require_known_classes(forest, query.resource_class)
        held_units = include_consumption(forest, forest.held_amounts.everywhere or {})
        amounts = InventoryAmounts(forest, rows, held_units, query.resource_class or None)
        body: dict[str, Any] = {"totals": amounts.totals()}
        page = None
        if query.by is not None:
            page = find_groups(forest, rows, query.by, after=marker, limit=query.limit)
            body["parts"] = amounts.sum_by_group(page, budget)
        if mix is not None:
            stranded_amounts = _find_stranded(forest, mix, rows, page, budget)
            totals_by_group = [part["totals"] for part in body.get("parts", ())]
            for number, totals in enumerate([*totals_by_group, body["totals"]]):
                for name in totals.keys() & stranded_amounts.keys():
                    totals[name]["stranded"] = stranded_amounts[name][number]
        next_after = None if page is None else page.next_after
        links = lists.make_links(call, query.by or "", next_after)
        yield orjson.dumps(body | {"cursor": cursor, "links": links})

    return Question(sum_up, holds=HoldsQuery(has_sums=True))


def _find_stranded(
    forest: Forest, mix: Mix, rows: Rows, page: GroupPage | None, budget: Budget
) -> dict[str, list[int]]:
    """Return the free amounts by class that a mix cannot use: for each group, and finally for all rows."""
    page_groups = 0 if page is None else len(page.labels)
    # The last group contains all rows.
    groups, members = np.full(len(rows), page_groups), rows
    if page is not None:
        groups = np.concatenate([page.group, groups])
        members = np.concatenate([rows[page.at], rows])
    return compute_stranded(forest, mix, groups, members, count=page_groups + 1, budget=budget)


@operation(
    "GET /treeclaim/totals",
    policy="placement:resource_providers:list",
    shows=_TOTALS,
    refusals=(lists.refuse_unknown_class("resource_class"),),
)
def show_totals(call: Call, query: TotalsQuery) -> Answer:
    """Sum up inventories, with their used and free amounts."""
    question = question_under(NO_ASSUMPTIONS, _read_question(call, query))
    return call.services.replica.answer(question, start_search(call))


@operation(
    "POST /treeclaim/totals",
    policy="placement:resource_providers:list",
    shows=_TOTALS | {"given?": ASSUMED},
    has_cache_headers=False,
    is_read_only=True,
    refusals=(lists.refuse_unknown_class("resource_class"),),
)
def show_given_totals(call: Call, query: TotalsQuery, body: TotalsBody) -> Answer:
    """Sum up inventories under assumptions, with their used and free amounts."""
    question, arrival = _read_question(call, query), start_search(call)
    assumptions = read_assumptions(call, body, QueryParser(call, arrival, body.placed_queries))
    question = question_under(assumptions, question)
    return call.services.replica.answer(question, arrival)
