# SPDX-License-Identifier: Apache-2.0
"""GET /treeclaim/totals (contract page 99, section 3)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson

from treeclaim.api.protocol.errors import BAD_VALUE, bad_request
from treeclaim.api.protocol.operations import Call, Forms, Reply, operation
from treeclaim.api.protocol.request.bodies import BodyReader
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK, require_query
from treeclaim.api.protocol.texts import now, quoted
from treeclaim.api.resources.candidates.mixes import Mixes
from treeclaim.api.resources.candidates.operations import asked_by
from treeclaim.api.resources.candidates.queries import Queries, refusing_queries
from treeclaim.api.resources.extension import lists
from treeclaim.api.resources.extension import totals_schemas as schemas
from treeclaim.api.resources.planning.assumptions import read_assumptions, refusing_entries
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.domains.filters import require_known_classes
from treeclaim.forest.listing.parts import By, takes_long
from treeclaim.forest.listing.selection import meeting
from treeclaim.forest.listing.totals import Summable, summable
from treeclaim.forest.order.mixes.room import stranded
from treeclaim.forest.table.columns import Rows
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import HeldColumns, held_with_consumed
from treeclaim.model.changes import Cursor
from treeclaim.model.extension import cursor_text
from treeclaim.model.extension.mixes import Mix
from treeclaim.model.extension.planning import NOTHING_GIVEN, Given
from treeclaim.model.request import ProviderConditions
from treeclaim.replica.planning import question_under
from treeclaim.replica.question import HoldsQuery, OnePiece, Question
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.operations.locks.consumed import of_ids, with_consumed
from treeclaim.store.reading.holds import held_everywhere


@dataclass(frozen=True, slots=True)
class _Asked:
    """The query of a request.

    Attributes:
        conditions: Which providers count.
        classes: Which of their inventories; None for all.
        by: What the parts are; None for no parts.
        after: Key behind which the page of parts begins.
        limit: How many parts at most.
        mix: The mix for which to tell which free amounts are of no use to it; None for none.
    """

    conditions: ProviderConditions
    classes: tuple[str, ...] | None
    by: By | None
    after: str
    limit: int
    mix: Mix | None = None


@operation(
    "GET /treeclaim/totals",
    policy="placement:resource_providers:list",
    answers=(schemas.TOTALS,),
    query=schemas.QUERY,
    forms=Forms(query={name: lists.SELECTION[name] for name in ("required", "member_of")}),
    needs_opt_in=True,
    media_first=True,
)
def show_totals(call: Call) -> Reply:
    """Sum up inventories, and what is used and free of them."""
    pairs = call.query()
    query = require_query(schemas.QUERY.at(call.version), pairs)
    asked = _asked(call, pairs, query)
    if asked.mix is not None:
        # To count what fits takes long.
        return _by_a_child(call, asked, pairs, query)

    def of_forest(forest: Forest, cursor: Cursor) -> tuple[Summable, str, bool] | None:
        rows = _rows(forest, asked)
        if takes_long(forest, rows, asked.classes, asked.by):
            return None
        consumes = forest.holdings.patterns.are_any
        return _summable(forest, asked, rows), cursor_text.written(cursor), consumes

    def with_held(
        transaction: ReadTransaction, totals: tuple[Summable, str, bool] | None
    ) -> tuple[Summable, str, bool] | None:
        if totals is None:
            return None
        summable, cursor, consumes = totals
        return summable.with_held(_held(transaction, consumes=consumes)), cursor, consumes

    with lists.classes_named_by("resource_class"):
        totals = call.services.replica.at_one_moment(of_forest, with_held)
    if totals is None:
        return _by_a_child(call, asked, pairs, query)
    summable, cursor, _ = totals
    call.deadline.look()
    shown = _Shown(call.link(schemas.PATH), pairs, query.get("by", ""))
    body = shown.document(summable, cursor, call.deadline.look)
    return Reply(body=body, modified_at=now())


def _held(transaction: ReadTransaction, *, consumes: bool) -> HeldColumns:
    """Return what all holds have, and what that consumes, if any inventory consumes another."""
    held = {(provider, name): n for provider, name, n in held_everywhere(transaction)}
    if consumes:
        held = with_consumed(held, of_ids(transaction, {provider for provider, _ in held}))
    return HeldColumns.of([(*key, n) for key, n in held.items()])


@operation(
    "POST /treeclaim/totals",
    policy="placement:resource_providers:list",
    answers=(schemas.GIVEN_TOTALS,),
    body=BodyReader(schemas.TotalsBody),
    query=schemas.QUERY,
    most_values=MOST_VALUES_IN_BULK,
    forms=Forms(query={name: lists.SELECTION[name] for name in ("required", "member_of")}),
    needs_opt_in=True,
    only_reads=True,
)
def show_given_totals(call: Call) -> Reply:
    """Sum up inventories, and what would be used and free of them."""
    pairs = call.query()
    query = require_query(schemas.QUERY.at(call.version), pairs)
    shown = _Shown(call.link(schemas.PATH), pairs, query.get("by", ""))
    wanted = _asked(call, pairs, query)
    body: schemas.TotalsBody = call.json()
    asked = asked_by(call)
    with (
        lists.classes_named_by("resource_class"),
        refusing_queries(),
        refusing_entries(call.deadline),
    ):
        given = read_assumptions(call, body, Queries(call, asked, body.placed_queries))
        document = call.services.replica.answer(_totals_question(wanted, shown, given), asked)
        return Reply(body=document, is_ready_made=True)


def _by_a_child(
    call: Call,
    asked: _Asked,
    pairs: list[tuple[str, str]],
    query: Mapping[str, str],
) -> Reply:
    """Sum up, and count what is stranded if that is asked for, while nobody waits for the Forest."""
    shown = _Shown(call.link(schemas.PATH), pairs, query.get("by", ""))
    question = _totals_question(asked, shown, NOTHING_GIVEN)
    with lists.classes_named_by("resource_class"), refusing_queries():
        body = call.services.replica.answer(question, asked_by(call))
    return Reply(body=body, is_ready_made=True, modified_at=now())


@dataclass(frozen=True, slots=True)
class _Shown:
    """The form of the sums.

    Attributes:
        path: The path of the operation.
        pairs: The query string.
        kind: What the parts are; empty for no parts.
    """

    path: str
    pairs: list[tuple[str, str]]
    kind: str

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
        links = lists.links(self.path, self.pairs, self.kind, next_after)
        return body | {"cursor": cursor, "links": links}


def _totals_question(asked: _Asked, shown: _Shown, given: Given) -> Question:
    """Ask for the sums in the inventory as it would be; names that do not exist raise TreeclaimErrors."""

    def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> OnePiece:
        cursor = cursor_text.written(next(parts))
        summable = _summable(forest, asked, _rows(forest, asked))
        if forest.held.everywhere is not None:
            summable = summable.with_held(held_with_consumed(forest, forest.held.everywhere))

        def written() -> bytes:
            lost = _stranded(forest, asked, budget)
            return orjson.dumps(shown.document(summable, cursor, budget.check, lost))

        return OnePiece(written)

    return question_under(given, Question(work, holds=HoldsQuery(everywhere=True)))


def _asked(call: Call, pairs: list[tuple[str, str]], query: Mapping[str, str]) -> _Asked:
    by = By(query["by"]) if "by" in query else None
    after = lists.marker_of(query, query.get("by", ""))
    if by is By.TREE:
        after = str(lists.number_marker_of(query, by))
    return _Asked(
        lists.conditions_of(call, pairs, query),
        lists.several(query["resource_class"]) if "resource_class" in query else None,
        by,
        after,
        lists.limit_of(query),
        _mix(call, query["mix"]) if "mix" in query else None,
    )


def _mix(call: Call, name: str) -> Mix:
    """Return the mix that a query names.

    Raises:
        ApiError: 400 if there is none.
    """
    by_name = Mixes(call, call.deadline.look).named([name])
    if name not in by_name:
        raise bad_request(
            f"Invalid query string parameters: 'mix': there is no mix {quoted(name)!r}.", BAD_VALUE
        )
    return by_name[name]


def _stranded(forest: Forest, asked: _Asked, budget: Budget) -> dict[str, int]:
    """Return what is free but of no use to the mix that is asked about."""
    if asked.mix is None:
        return {}
    passes = np.zeros(forest.row_count, dtype=np.bool_)
    passes[meeting(forest, asked.conditions)] = True
    return stranded(forest, asked.mix, passes, budget)


def _rows(forest: Forest, asked: _Asked) -> Rows:
    rows = meeting(forest, asked.conditions)
    require_known_classes(forest, asked.classes or ())
    return rows


def _summable(forest: Forest, asked: _Asked, rows: Rows) -> Summable:
    return summable(forest, rows, asked.classes, asked.by, after=asked.after, limit=asked.limit)
