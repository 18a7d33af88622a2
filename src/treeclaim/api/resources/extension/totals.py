# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/totals (contract page 99, section 3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import orjson
from pydantic import Field

from treeclaim.api.protocol.operations import Call, Reply, operation, shows
from treeclaim.api.protocol.request.query_models import ClassNames
from treeclaim.api.protocol.request.schemas import LINKS, Shape
from treeclaim.api.resources.candidates.operations import start_search
from treeclaim.api.resources.candidates.queries import Mixes, Queries
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.planning.assumptions import (
    ASSUMED,
    Assumptions,
    QuestionBody,
    read_assumptions,
)
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_classes
from treeclaim.forest.listing.groups import By, GroupPage, groups_of
from treeclaim.forest.listing.selection import meeting
from treeclaim.forest.listing.totals import SUMS, InventoryAmounts
from treeclaim.forest.order.mixes.room import stranded_by_group
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns, held_with_consumed
from treeclaim.model.extension import cursor_text
from treeclaim.model.extension.planning import NO_ASSUMPTIONS, AssumptionSet, Mix
from treeclaim.replica.planning import question_under
from treeclaim.replica.question import HoldsQuery, PendingAnswer, Question


class TotalsQuery(lists.SelectionQuery):
    """Filters of inventories, the kind of parts, and the name of a mix."""

    resource_class: ClassNames = ()
    by: Annotated[By, Field(strict=False)] | None = None
    mix: str | None = None


class TotalsBody(QuestionBody):
    """Assumptions of sums."""

    given: Assumptions


_SUMS: Shape = {str: dict.fromkeys(SUMS, int) | {"held?": int, "stranded?": int}}

_TOTALS: Shape = {
    "totals": _SUMS,
    "cursor": str,
    "links": LINKS,
    "parts?": [{"uuid": str | None, "name": str | None, "totals": _SUMS}],
}

TOTALS = shows(_TOTALS)
GIVEN_TOTALS = shows(_TOTALS | {"given?": ASSUMED}, dated=False)
"""The response under assumptions."""


@dataclass(frozen=True, slots=True)
class _TotalsCall:
    """A call for totals.

    Attributes:
        call: The call.
        query: Its query.
        after: Key after which the page of parts begins.
        mix: The mix for which stranded amounts are reported; None for no such amounts.
    """

    call: Call
    query: TotalsQuery
    after: str
    mix: Mix | None

    @classmethod
    def read(cls, call: Call, query: TotalsQuery) -> Self:
        """Read the marker and the mix of a query.

        Raises:
            ApiError: 400.
        """
        after = query.after(query.by or "")
        if query.by is By.TREE:
            after = str(query.after_id(query.by))
        mix = None
        if query.mix is not None:
            where = "Invalid query string parameters: 'mix'"
            mix = Mixes(call, call.deadline.check).require(query.mix, where)
        return cls(call, query, after, mix)

    def stranded(
        self, forest: Forest, rows: Rows, groups: GroupPage | None, budget: Budget
    ) -> dict[str, list[int]]:
        """Return the free amounts that the mix cannot use, for each group and finally for all rows."""
        if self.mix is None:
            return {}
        count = 0 if groups is None else len(groups.labels)
        group, members = np.full(len(rows), count), rows
        if groups is not None:
            group = np.concatenate([groups.group, group])
            members = np.concatenate([rows[groups.at], rows])
        return stranded_by_group(forest, self.mix, group, members, count=count + 1, budget=budget)

    def document(self, forest: Forest, cursor: str, budget: Budget) -> dict[str, Any]:
        """Return the response.

        Raises:
            ResourceClassNotFoundError: for an unknown class.
        """
        query, groups = self.query, None
        rows = meeting(forest, query.conditions)
        require_known_classes(forest, query.resource_class)
        held = held_with_consumed(forest, forest.held.everywhere or HeldColumns.of(()))
        amounts = InventoryAmounts(forest, rows, held, query.resource_class or None)
        totals = amounts.totals()
        body: dict[str, Any] = {"totals": totals}
        if query.by is not None:
            groups = groups_of(forest, rows, query.by, after=self.after, limit=query.limit)
            body["parts"] = amounts.totals_by_group(groups, budget)
        stranded = self.stranded(forest, rows, groups, budget)
        parts = [*(part["totals"] for part in body.get("parts", ())), totals]
        for number, sums in enumerate(parts):
            for name in sums.keys() & stranded.keys():
                sums[name]["stranded"] = stranded[name][number]
        links = lists.links(self.call, query.by or "", groups and groups.next_after)
        return body | {"cursor": cursor, "links": links}

    def question(self, assumptions: AssumptionSet) -> Question:
        """Return the question for the sums under assumptions; its answer raises TreeclaimErrors for unknown names."""

        def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> PendingAnswer:
            cursor = cursor_text.write_cursor(next(parts))
            yield orjson.dumps(self.document(forest, cursor, budget))
            return 0

        return question_under(assumptions, Question(work, holds=HoldsQuery(everywhere=True)))


@operation(
    "GET /treeclaim/totals",
    policy="placement:resource_providers:list",
    answers=(TOTALS,),
    refusals=(lists.unknown_class_refusal("resource_class"),),
)
def show_totals(call: Call, query: TotalsQuery) -> Reply:
    """Sum up inventories, and what is used and free of them."""
    totals_call = _TotalsCall.read(call, query)
    question = totals_call.question(NO_ASSUMPTIONS)
    pieces = call.services.replica.answer(question, start_search(call))
    return Reply(body=pieces)


@operation(
    "POST /treeclaim/totals",
    policy="placement:resource_providers:list",
    answers=(GIVEN_TOTALS,),
    only_reads=True,
    refusals=(lists.unknown_class_refusal("resource_class"),),
)
def show_given_totals(call: Call, query: TotalsQuery, body: TotalsBody) -> Reply:
    """Sum up inventories, and what would be used and free of them."""
    totals_call = _TotalsCall.read(call, query)
    arrival = start_search(call)
    assumptions = read_assumptions(call, body, Queries(call, arrival, body.placed_queries))
    document = call.services.replica.answer(totals_call.question(assumptions), arrival)
    return Reply(body=document)
