# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/totals (contract page 99, section 3)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
import orjson
from pydantic import Field

from treeclaim.api.protocol.errors import BAD_VALUE, bad_request
from treeclaim.api.protocol.operations import (
    Answer,
    Call,
    Reply,
    operation,
)
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.protocol.request.query_models import ClassNames, QueryReader
from treeclaim.api.protocol.request.schemas import (
    INTEGER,
    LINKS,
    STRING,
    TEXT_OR_NULL,
    Schema,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.api.protocol.texts import now, quote_value
from treeclaim.api.resources.candidates.mixes import Mixes
from treeclaim.api.resources.candidates.operations import arrival_of
from treeclaim.api.resources.candidates.queries import Queries, refusing_queries
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.planning.assumptions import (
    ASSUMED,
    Assumptions,
    QuestionBody,
    read_assumptions,
    refusing_entries,
)
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_classes
from treeclaim.forest.listing.parts import By, takes_long
from treeclaim.forest.listing.selection import meeting
from treeclaim.forest.listing.totals import ClassTotals, Summable, summable
from treeclaim.forest.order.mixes.room import stranded_amounts
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns, held_with_consumed
from treeclaim.model.changes import Cursor
from treeclaim.model.extension import cursor_text
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.extension.planning import NO_ASSUMPTIONS, AssumptionSet
from treeclaim.replica.planning import question_under
from treeclaim.replica.question import HoldsQuery, OnePiece, Question
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.operations.locks.consumed import load_consumption, with_consumed
from treeclaim.store.reading.holds import load_held_sums


class TotalsQuery(lists.SelectionQuery):
    """Filters of inventories, the kind of parts, and the name of a mix."""

    resource_class: ClassNames = ()
    by: Annotated[By, Field(strict=False)] | None = None
    mix: str | None = None


_QUERY = QueryReader(TotalsQuery)


class TotalsBody(QuestionBody):
    """Assumptions of sums."""

    given: Assumptions


SUMS = mapping(
    ".*",
    record(
        {field.name: INTEGER for field in fields(ClassTotals)},
        {"held": INTEGER, "stranded": INTEGER},
    ),
)

_REQUIRED = {"totals": SUMS, "cursor": STRING, "links": LINKS}
_OPTIONAL: dict[str, Schema] = {
    "parts": {
        "type": "array",
        "items": record({"uuid": TEXT_OR_NULL, "name": TEXT_OR_NULL, "totals": SUMS}),
    }
}

TOTALS = Answer(body=record(_REQUIRED, _OPTIONAL))
"""Sums, and a page of parts."""

GIVEN_TOTALS = Answer(body=record(_REQUIRED, _OPTIONAL | {"given": ASSUMED}), dated=False)
"""The response for the inventory as it would be."""


@dataclass(frozen=True, slots=True)
class _TotalsCall:
    """A call for totals, whose query is read.

    Attributes:
        call: The call.
        query: Its query.
        after: Key behind which the page of parts begins.
        mix: The mix for which stranded amounts are reported; None for none.
    """

    call: Call
    query: TotalsQuery
    after: str
    mix: Mix | None

    @classmethod
    def read(cls, call: Call) -> Self:
        """Read the query of a call.

        Raises:
            ApiError: 400.
        """
        query: TotalsQuery = _QUERY.read_pairs(call.query())
        after = query.after(query.by or "")
        if query.by is By.TREE:
            after = str(query.after_id(query.by))
        return cls(call, query, after, None if query.mix is None else _mix(call, query.mix))

    def rows(self, forest: Forest) -> Rows:
        """Return the providers that count.

        Raises:
            ResourceClassNotFoundError: for an unknown class.
        """
        rows = meeting(forest, self.query.conditions)
        require_known_classes(forest, self.query.resource_class)
        return rows

    def summable(self, forest: Forest, rows: Rows) -> Summable:
        """Copy out of the Forest what is to be summed up."""
        query, classes = self.query, self.query.resource_class or None
        return summable(forest, rows, classes, query.by, after=self.after, limit=query.limit)

    def stranded(self, forest: Forest, rows: Rows, budget: Budget) -> dict[str, int]:
        """Return the free amounts that are of no use to the mix."""
        if self.mix is None:
            return {}
        passes = np.zeros(forest.row_count, dtype=np.bool_)
        passes[rows] = True
        return stranded_amounts(forest, self.mix, passes, budget)

    def document(
        self,
        summable: Summable,
        cursor: str,
        look: Callable[[], None],
        lost: Mapping[str, int] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Return the answer; `look` raises where the time is over, `lost` is what is stranded."""
        totals: dict[str, Any] = {**summable.totals()}
        for name in totals.keys() & lost.keys():
            totals[name] = {**asdict(totals[name]), "stranded": lost[name]}
        body: dict[str, Any] = {"totals": totals}
        parts = summable.parts(look)
        if parts is not None:
            body["parts"] = parts.parts
        next_after = None if parts is None else parts.next_after
        links = lists.links(self.call, self.query.by or "", next_after)
        return body | {"cursor": cursor, "links": links}

    def question(self, assumptions: AssumptionSet) -> Question:
        """Ask for the sums in the inventory as it would be; unknown names raise TreeclaimErrors."""

        def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> OnePiece:
            cursor = cursor_text.write_cursor(next(parts))
            rows = self.rows(forest)
            summable = self.summable(forest, rows)
            if forest.held.everywhere is not None:
                summable = summable.with_held(held_with_consumed(forest, forest.held.everywhere))

            def written() -> bytes:
                lost = self.stranded(forest, rows, budget)
                return orjson.dumps(self.document(summable, cursor, budget.check, lost))

            return OnePiece(written)

        return question_under(assumptions, Question(work, holds=HoldsQuery(everywhere=True)))


@operation(
    "GET /treeclaim/totals",
    policy="placement:resource_providers:list",
    answers=(TOTALS,),
    query=_QUERY,
    needs_opt_in=True,
    media_first=True,
)
def show_totals(call: Call) -> Reply:
    """Sum up inventories, and what is used and free of them."""
    totals_call = _TotalsCall.read(call)

    def of_forest(forest: Forest, cursor: Cursor) -> tuple[Summable, str, bool] | None:
        rows, query = totals_call.rows(forest), totals_call.query
        if takes_long(forest, rows, query.resource_class or None, query.by):
            return None
        consumes = forest.holdings.patterns.are_any
        return totals_call.summable(forest, rows), cursor_text.write_cursor(cursor), consumes

    def with_held(
        transaction: ReadTransaction, copied: tuple[Summable, str, bool] | None
    ) -> tuple[Summable, str] | None:
        if copied is None:
            return None
        summable, cursor, consumes = copied
        return summable.with_held(_read_held(transaction, consumes=consumes)), cursor

    with lists.classes_named_by("resource_class"), refusing_queries():
        # To count what fits takes long.
        if totals_call.mix is None:
            totals = call.services.replica.at_one_moment(of_forest, with_held)
            if totals is not None:
                call.deadline.look()
                body = totals_call.document(*totals, call.deadline.look)
                return Reply(body=body, modified_at=now())
        question = totals_call.question(NO_ASSUMPTIONS)
        pieces = call.services.replica.answer(question, arrival_of(call))
    return Reply(body=pieces, is_ready_made=True, modified_at=now())


def _read_held(transaction: ReadTransaction, *, consumes: bool) -> HeldColumns:
    """Return what all holds have, and what that consumes, if any inventory consumes another."""
    held = {(provider, name): n for provider, name, n in load_held_sums(transaction)}
    if consumes:
        held = with_consumed(
            held, load_consumption(transaction, {provider for provider, _ in held})
        )
    return HeldColumns.of([(*key, n) for key, n in held.items()])


@operation(
    "POST /treeclaim/totals",
    policy="placement:resource_providers:list",
    answers=(GIVEN_TOTALS,),
    body=BodyReader(TotalsBody),
    query=_QUERY,
    most_values=MOST_VALUES_IN_BULK,
    needs_opt_in=True,
    only_reads=True,
)
def show_given_totals(call: Call) -> Reply:
    """Sum up inventories, and what would be used and free of them."""
    totals_call = _TotalsCall.read(call)
    body: TotalsBody = call.json()
    arrival = arrival_of(call)
    with (
        lists.classes_named_by("resource_class"),
        refusing_queries(),
        refusing_entries(call),
    ):
        assumptions = read_assumptions(call, body, Queries(call, arrival, body.placed_queries))
        document = call.services.replica.answer(totals_call.question(assumptions), arrival)
    return Reply(body=document, is_ready_made=True)


def _mix(call: Call, name: str) -> Mix:
    """Return the mix that a query names.

    Raises:
        ApiError: 400 if there is none.
    """
    by_name = Mixes(call, call.deadline.look).named([name])
    if name not in by_name:
        raise bad_request(
            f"Invalid query string parameters: 'mix': there is no mix {quote_value(name)!r}.",
            BAD_VALUE,
        )
    return by_name[name]
