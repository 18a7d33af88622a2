# SPDX-License-Identifier: Apache-2.0
"""Builds questions under assumptions, and plans (contract page 101)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.assumptions import apply_assumptions
from treeclaim.forest.planning.consumers import Consumers, attach_requests, read_consumers
from treeclaim.forest.table.forest import Forest
from treeclaim.forest.table.held import NOTHING_HELD
from treeclaim.model.changes import Cursor
from treeclaim.model.extension.planning import AssumptionSet
from treeclaim.model.request import CandidateRequest
from treeclaim.replica.question import NO_HOLDS, HoldsQuery, PendingAnswer, Question
from treeclaim.replica.questions import require_names
from treeclaim.store.database.transactions import ReadTransaction
from treeclaim.store.reading.planned import load_planned_consumers

Planner = Callable[[Forest, Consumers, Budget], dict[str, Any]]
"""Returns a plan for a Forest and all consumers; the budget leaves time to serialize the plan."""


def question_under(assumptions: AssumptionSet, question: Question) -> Question:
    """Return a question about the inventory under assumptions (section 1).

    Without assumptions the answer has no member `given`. Invalid assumptions raise BatchRefusedError or QueryError.
    The original question must read no part except the Forest's position in the feed.
    """

    def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> PendingAnswer:
        cursor, forest.held_amounts = next(parts), next(parts)
        consumers, _ = read_consumers(forest, parts, budget)
        placed_numbers = apply_assumptions(forest, consumers, assumptions, budget)
        answer = question.work(forest, iter((cursor,)), budget)
        return _insert_placed(answer, placed_numbers) if assumptions else answer

    def reads(transaction: ReadTransaction, cursor: Cursor) -> Iterator[object]:
        yield cursor
        yield question.holds.read(transaction) if question.holds else NOTHING_HELD
        if assumptions.release:
            yield from load_planned_consumers(transaction, sorted(set(assumptions.release)))

    return replace(question, work=work, key=None, holds=NO_HOLDS, reads=reads, is_repeatable=False)


def _insert_placed(answer: PendingAnswer, placed_numbers: Sequence[int]) -> PendingAnswer:
    """Yield an answer, a JSON object, with the numbers of placed consumers as its first member."""
    member = orjson.dumps({"given": {"placed": placed_numbers}})
    yield member[:-1] + b"," + bytes(next(answer))[1:]
    yield from answer


def plan_question(
    assumptions: AssumptionSet,
    planner: Planner,
    requests: Mapping[str, Sequence[str]],
    queries: Mapping[str, CandidateRequest],
    parse: Callable[[str], CandidateRequest],
    *,
    hold_uuids: frozenset[str] = frozenset(),
) -> Question:
    """Return the question for a plan under assumptions.

    Invalid assumptions raise BatchRefusedError, and unknown names QueryError.

    Args:
        assumptions: Assumptions.
        planner: Makes the plan.
        requests: Queries of the call by consumer.
        queries: The parsed queries, by their positions in the call.
        parse: Parses a stored query.
        hold_uuids: UUIDs of the holds with amounts that the plan needs.
    """

    def work(forest: Forest, parts: Iterator[Any], budget: Budget) -> PendingAnswer:
        forest.held_amounts = next(parts)
        present_consumers, stored_requests = read_consumers(forest, parts, budget)
        placed_numbers = apply_assumptions(forest, present_consumers, assumptions, budget)
        require_names(forest, queries, budget)

        def parse_within_budget(text: str) -> CandidateRequest:
            budget.check()
            return parse(text)

        consumers = attach_requests(
            present_consumers, stored_requests, requests, forest, parse_within_budget
        )
        plan = planner(forest, consumers, budget)
        if assumptions:
            plan = {"given": {"placed": placed_numbers}} | plan
        yield orjson.dumps(plan)

    def reads(transaction: ReadTransaction, _: Cursor) -> Iterator[object]:
        yield HoldsQuery(hold_uuids, has_sums=True).read(transaction)
        yield from load_planned_consumers(transaction)

    return Question(work, reads=reads, is_plan=True)
