# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/survival and /treeclaim/moves (contract page 101, sections 4 and 5)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WrapValidator, model_validator

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import (
    AggregateUuid,
    Alternatives,
    Body,
    Consumers,
    ConsumerUuid,
    Domains,
    HoldUuids,
    Parts,
    Positive,
    ProviderUuid,
    Query,
    ShortText,
    list_length,
)
from treeclaim.api.protocol.request.schemas import AMOUNTS, MOST_NAMED, ROOTS, TYPE_NAME, Shape
from treeclaim.api.protocol.request.validation import parse_query_string
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.candidates.operations import require_may_draw
from treeclaim.api.resources.candidates.queries import QueryParser, parse_pairs
from treeclaim.api.resources.planning.assumptions import (
    ASSUMED,
    LIST_RULE,
    QuestionBody,
    read_assumptions,
)
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import Consumers as PlannedConsumers
from treeclaim.forest.planning.moves.planner import find_move_plan
from treeclaim.forest.planning.survival import check_survival
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import (
    CapacityGoal,
    Document,
    EvacuationGoal,
    Failures,
    Goal,
    MixGoal,
    MovableConsumers,
    MovesCall,
    PlanRule,
)
from treeclaim.model.request import CandidateRequest
from treeclaim.replica import Arrival
from treeclaim.replica.planning import Planner, plan_question

_MOST_RULES = 16

_GRACE = 30.0
"""Seconds after the deadline of plans until an unfinished child is killed: it may be serializing its answer, or be in a
step that does not check the deadline."""

ConsumerTypes = Annotated[
    frozenset[Annotated[str, Field(pattern=TYPE_NAME)]], Field(strict=False, max_length=1_000)
]
"""Names of consumer types, and `unknown` for consumers without a type."""


def _read_requests(value: Any, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    requests = read(value)
    if len(requests) < len(value):
        raise ValueError("a consumer is named twice")
    return requests


class ConsumerRule(Body):
    """A rule between consumers that are moved or placed again."""

    domains: Domains
    consumers: Consumers
    max_per_domain: Positive


class PlanBody(QuestionBody):
    """Members of the bodies of all plans."""

    requests: Annotated[
        dict[ConsumerUuid, Alternatives],
        Field(max_length=MOST_NAMED),
        WrapValidator(_read_requests),
    ] = Field(default_factory=dict)
    rules: Annotated[tuple[ConsumerRule, ...], list_length(0, _MOST_RULES)] = ()
    explain: bool = False


class PlanCall:
    """A call for a plan.

    Attributes:
        end: Time of the monotonic clock at which the best plan so far is returned.
        queries: Parses further queries of the call.
        rules: Rules for consumers that are moved or placed again.
    """

    def __init__(self, call: Call, body: PlanBody, further_queries: Iterable[str] = ()) -> None:
        """Read the members that all plans share; `further_queries` are those of other members.

        Raises:
            ApiError: 400, 403.
        """
        call.require_allowed(LIST_RULE)
        seconds = call.services.options.plan_seconds
        most_bytes = call.services.search.most_bytes
        self._call = call
        self._body = body
        self._arrival = Arrival.now(seconds + _GRACE, call.client_gone, most_bytes)
        self.end = self._arrival.begin + seconds
        texts = chain(*body.requests.values(), body.placed_queries, further_queries)
        self.queries = QueryParser(call, self._arrival, texts)
        self._parsed_requests = {
            (place := f"requests.{consumer}[{number}]"): self.queries.parse_without_holds(
                place, text
            )
            for consumer, alternatives in body.requests.items()
            for number, text in enumerate(alternatives)
        }
        self.rules = tuple(
            PlanRule(rule.domains or None, frozenset(rule.consumers), rule.max_per_domain)
            for rule in body.rules
        )
        self._assumptions = read_assumptions(call, body, self.queries)

    def answer(
        self,
        planner: Planner,
        further_requests: Mapping[str, CandidateRequest] | None = None,
        holds: Iterable[str] = (),
    ) -> Answer:
        """Return the answer of a planner.

        Args:
            planner: Computes the plan.
            further_requests: Further parsed queries by their places.
            holds: Holds with amounts that the plan uses.

        Raises:
            ApiError: 400, 409.
            OverloadedError: while another plan is being computed.
        """
        most_groups = self._call.services.options.max_request_groups
        version = self._call.version

        def parse_stored(text: str) -> CandidateRequest:
            return parse_pairs(parse_query_string(text), version, most_groups)

        question = plan_question(
            self._assumptions,
            planner,
            self._body.requests,
            {**self._parsed_requests, **(further_requests or {})},
            parse_stored,
            hold_uuids=frozenset(holds),
        )
        return self._call.services.replica.answer(question, self._arrival)


class SurvivalBody(PlanBody):
    """Failing domains, and the consumers that must survive their failure."""

    domains: Domains
    consumer_types: ConsumerTypes | None = None
    from_holds: HoldUuids = ()
    limit: Parts = 100
    shows_all: bool = Field(False, alias="all")


SURVIVAL: Shape = {
    "survive": int,
    "fail": int,
    "unknown": int,
    "of": int,
    "complete": bool,
    "domains": [
        {
            "uuid": str,
            "name": str | None,
            "survives": bool | None,
            "consumers": int,
            "without_request": int,
            "unplaced": int,
            "first_unplaced": str | None,
            "proven": bool,
            "explanation?": candidates.EXPLANATION,
        }
    ],
    "given?": ASSUMED,
}


@operation(
    "POST /treeclaim/survival",
    policy="placement:allocation_candidates:list",
    shows=SURVIVAL,
    has_cache_headers=False,
    is_read_only=True,
)
def survive_failures(call: Call, body: SurvivalBody) -> Answer:
    """Check whether all consumers could be placed elsewhere after failures."""
    require_may_draw(call, body)
    plan = PlanCall(call, body)
    failures = Failures(
        domains=body.domains or None,
        types=body.consumer_types,
        from_holds=body.from_holds,
        rules=plan.rules,
        limit=body.limit,
        shows_all=body.shows_all,
        explain=body.explain,
    )

    def check(forest: Forest, consumers: PlannedConsumers, budget: Budget) -> Document:
        with budget.ending(plan.end):
            return check_survival(forest, consumers, failures, budget)

    return plan.answer(check, holds=body.from_holds)


class FitGoal(Body):
    """The goal of room for further consumers with a query."""

    query: Query
    amount: Positive


class KeepGoal(Body):
    """The goal of the most room for a mix."""

    mix: str
    empty_trees: bool = False


class GoalBody(Body):
    """The goal of moves, of exactly one kind."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    empty: Annotated[tuple[ProviderUuid, ...], list_length(1, MOST_NAMED)] = ()
    empty_aggregate: AggregateUuid | None = None
    fit: FitGoal | None = None
    keep: KeepGoal | None = None
    leave: Literal[True] | None = None

    @model_validator(mode="before")
    @classmethod
    def _check_kind(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) != 1:
            raise ValueError(f"{len(value)} goals, and one is expected")
        return value


class MovableBody(Body):
    """The movable consumers."""

    consumer_types: ConsumerTypes | None = None
    projects: (
        Annotated[frozenset[ShortText], Field(strict=False, max_length=MOST_NAMED)] | None
    ) = None
    excepted: Consumers = Field((), alias="except")

    def read(self) -> MovableConsumers:
        """Return the movable consumers."""
        return MovableConsumers(self.consumer_types, self.projects, frozenset(self.excepted))


class MovesBody(PlanBody):
    """The goal and the limits of moves."""

    goal: GoalBody
    movable: MovableBody | None = None
    max_moves: Annotated[int, Field(ge=1, le=10_000)] = 100
    both_at_once: bool = True


_ALLOCATIONS: Shape = {str: {"resources": AMOUNTS}}
_SITUATION: Shape = {"left": int | None, "fits": int | None, "empty_trees": int}

MOVES: Shape = {
    "reached": bool,
    "complete": bool,
    "at_least": int | None,
    "optimal": bool,
    "proven": bool,
    "moves": [
        {
            "consumer": str,
            "alternative": int,
            "from": _ALLOCATIONS,
            "to": _ALLOCATIONS,
            "mappings": dict,
            "from_roots": ROOTS,
            "to_roots": ROOTS,
            "consumer_generation": int,
        }
    ],
    "stuck": [
        {
            "consumer": str,
            "reason": ("not_movable", "no_request", "no_room", "rule", "max_moves"),
            "explanation?": candidates.EXPLANATION,
        }
    ],
    "before": _SITUATION,
    "after": _SITUATION,
    "given?": ASSUMED,
}


@operation(
    "POST /treeclaim/moves",
    policy="placement:allocation_candidates:list",
    shows=MOVES,
    has_cache_headers=False,
    is_read_only=True,
)
def plan_moves(call: Call, body: MovesBody) -> Answer:
    """Plan moves that empty hosts, or make room."""
    plan = PlanCall(call, body, [body.goal.fit.query] if body.goal.fit else ())
    goal = _read_goal(call, body.goal, plan.queries)
    moves = MovesCall(
        goal=goal,
        movable=MovableConsumers() if body.movable is None else body.movable.read(),
        rules=plan.rules,
        max_moves=body.max_moves,
        both_at_once=body.both_at_once,
        explain=body.explain,
    )

    def make(forest: Forest, consumers: PlannedConsumers, budget: Budget) -> Document:
        return find_move_plan(forest, consumers.values(), moves, budget, plan.end)

    if isinstance(goal, CapacityGoal):
        return plan.answer(make, {"goal.fit.query": goal.request}, goal.request.from_holds)
    return plan.answer(make)


def _read_goal(call: Call, goal: GoalBody, queries: QueryParser) -> Goal:
    """Read a goal; raise a 400 for an invalid query or mix, or a 403 for its holds."""
    if goal.fit is not None:
        request = queries.parse("goal.fit.query", goal.fit.query)
        require_may_draw(call, request)
        return CapacityGoal(replace(request, limit=None), goal.fit.amount)
    if goal.keep is not None:
        mix = queries.mixes.require(goal.keep.mix, "goal.keep")
        requests = tuple((part.request, part.weight) for part in mix.requests.values())
        return MixGoal(requests, goal.keep.empty_trees)
    return EvacuationGoal(goal.empty, goal.empty_aggregate, bool(goal.leave))
