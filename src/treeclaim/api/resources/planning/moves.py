# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/moves (contract page 101, section 5)."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import (
    AggregateUuid,
    Body,
    Consumers,
    Positive,
    ProviderUuid,
    Query,
    ShortText,
    items,
)
from treeclaim.api.protocol.request.schemas import AMOUNTS, MOST_NAMED, ROOTS, Shape
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.candidates.operations import require_may_draw
from treeclaim.api.resources.candidates.queries import Queries
from treeclaim.api.resources.planning.assumptions import ASSUMED
from treeclaim.api.resources.planning.plans import ConsumerTypes, PlanBody, PlanCall
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import Consumers as PlannedConsumers
from treeclaim.forest.planning.moves.planner import make_plan
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import Document, Empty, Fit, Goal, Keep, Movable, Moves


class FitGoal(Body):
    """The goal that a number of further consumers of a request fit."""

    query: Query
    amount: Positive


class KeepGoal(Body):
    """The goal of as much room as possible for a mix."""

    mix: str
    empty_trees: bool = False


class GoalBody(Body):
    """The goal of moves, of exactly one kind."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    empty: Annotated[tuple[ProviderUuid, ...], items(1, MOST_NAMED)] = ()
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

    def read(self) -> Movable:
        """Return the movable consumers for a plan."""
        return Movable(self.consumer_types, self.projects, frozenset(self.excepted))


class MovesBody(PlanBody):
    """A goal, and the limits of moves."""

    goal: GoalBody
    movable: MovableBody | None = None
    max_moves: Annotated[int, Field(ge=1, le=10_000)] = 100
    both_at_once: bool = True


_HELD: Shape = {str: {"resources": AMOUNTS}}
_STANDING: Shape = {"left": int | None, "fits": int | None, "empty_trees": int}

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
            "from": _HELD,
            "to": _HELD,
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
    "before": _STANDING,
    "after": _STANDING,
    "given?": ASSUMED,
}


@operation(
    "POST /treeclaim/moves",
    policy="placement:allocation_candidates:list",
    shows=MOVES,
    dated=False,
    only_reads=True,
)
def plan_moves(call: Call, body: MovesBody) -> Answer:
    """Plan moves that empty hosts, or make room."""
    plan = PlanCall(call, body, [body.goal.fit.query] if body.goal.fit else ())
    goal = _read_goal(call, body.goal, plan.queries)
    moves = Moves(
        goal=goal,
        movable=Movable() if body.movable is None else body.movable.read(),
        rules=plan.rules,
        max_moves=body.max_moves,
        both_at_once=body.both_at_once,
        explain=body.explain,
    )

    def make(forest: Forest, consumers: PlannedConsumers, budget: Budget) -> Document:
        return make_plan(forest, consumers.values(), moves, budget, plan.end)

    if isinstance(goal, Fit):
        return plan.answer(make, {"goal.fit.query": goal.request}, goal.request.from_holds)
    return plan.answer(make)


def _read_goal(call: Call, goal: GoalBody, queries: Queries) -> Goal:
    """Read a goal.

    Raises:
        ApiError: 400, 403.
    """
    if goal.fit is not None:
        request = queries.at("goal.fit.query", goal.fit.query)
        require_may_draw(call, request)
        return Fit(replace(request, limit=None), goal.fit.amount)
    if goal.keep is not None:
        mix = queries.mixes.require(goal.keep.mix, "goal.keep")
        requests = tuple((part.request, part.weight) for part in mix.requests.values())
        return Keep(requests, goal.keep.empty_trees)
    return Empty(goal.empty, goal.empty_aggregate, bool(goal.leave))
