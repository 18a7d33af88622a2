# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/moves (contract page 101, section 5)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from treeclaim.api.protocol.operations import Answer, Call, Reply, Versioned, operation
from treeclaim.api.protocol.request.schemas import (
    AMOUNTS,
    BOOLEAN,
    INTEGER,
    MANY_UUIDS,
    MOST_NAMED,
    POSITIVE,
    ROOTS,
    SHORT_TEXT,
    STRING,
    UUID,
    Schema,
    mapping,
    record,
)
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.candidates.operations import require_may_draw
from treeclaim.api.resources.candidates.queries import Queries, refusing_queries
from treeclaim.api.resources.planning import given as forms
from treeclaim.api.resources.planning.given import TOLD, uuids_of
from treeclaim.api.resources.planning.reading import (
    CONSUMER_TYPES,
    MEMBERS,
    asked_for_plan,
    end_of_plan,
    plan_call,
    planned,
)
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import Consumers
from treeclaim.forest.planning.moves.planner import make_plan
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.moves import Empty, Fit, Goal, Keep, Movable, Moves
from treeclaim.model.extension.planning import Document

_MOST_MOVES, _DEFAULT_MOVES = 10_000, 100


_GOALS: dict[str, Schema] = {
    "empty": MANY_UUIDS | {"minItems": 1},
    "empty_aggregate": UUID,
    "fit": record(
        {
            "query": {"type": "string"},
            "amount": POSITIVE,
        }
    ),
    "keep": record({"mix": {"type": "string"}}, {"empty_trees": BOOLEAN}),
    "leave": {"type": "boolean", "enum": [True]},
}


def _body() -> Schema:
    """Return the schema of the body."""
    goal = record({}, _GOALS) | {"minProperties": 1, "maxProperties": 1}
    movable = record(
        {},
        {
            "consumer_types": CONSUMER_TYPES,
            "projects": {"type": "array", "maxItems": MOST_NAMED, "items": SHORT_TEXT},
            "except": MANY_UUIDS,
        },
    )
    return record(
        {"goal": goal},
        {
            "movable": movable,
            "max_moves": {"type": "integer", "minimum": 1, "maximum": _MOST_MOVES},
            "both_at_once": BOOLEAN,
            **MEMBERS,
        },
    )


_NUMBER: Schema = {"type": ["integer", "null"]}
_HELD = mapping(".*", record({"resources": AMOUNTS}))
_STANDING = record({"left": _NUMBER, "fits": _NUMBER, "empty_trees": INTEGER})

MOVES = Answer(
    body=record(
        {
            "reached": BOOLEAN,
            "complete": BOOLEAN,
            "at_least": _NUMBER,
            "optimal": BOOLEAN,
            "proven": BOOLEAN,
            "moves": {
                "type": "array",
                "items": record(
                    {
                        "consumer": STRING,
                        "alternative": INTEGER,
                        "from": _HELD,
                        "to": _HELD,
                        "mappings": {"type": "object"},
                        "from_roots": ROOTS,
                        "to_roots": ROOTS,
                        "consumer_generation": INTEGER,
                    }
                ),
            },
            "stuck": {
                "type": "array",
                "items": record(
                    {
                        "consumer": STRING,
                        "reason": {
                            "enum": ["not_movable", "no_request", "no_room", "rule", "max_moves"]
                        },
                    },
                    {"explanation": candidates.EXPLANATION.body or {}},
                ),
            },
            "before": _STANDING,
            "after": _STANDING,
        },
        {"given": TOLD},
    ),
    dated=False,
)
"""A plan of moves."""


@operation(
    "POST /treeclaim/moves",
    policy="placement:allocation_candidates:list",
    answers=(MOVES,),
    body=Versioned(_body()),
    most_values=MOST_VALUES_IN_BULK,
    forms=forms.QUERIES,
    needs_opt_in=True,
    only_reads=True,
)
def plan_moves(call: Call) -> Reply:
    """Say which moves empty hosts, or make room."""
    body = call.json()
    asked = asked_for_plan(call)
    fit = body["goal"].get("fit")
    with refusing_queries():
        read = plan_call(call, body, asked, () if fit is None else (fit["query"],))
        goal = _goal(call, body["goal"], read.queries)
    named = frozenset[str]()
    if isinstance(goal, Fit):
        read = replace(read, read={**read.read, "goal.fit.query": goal.request})
        named = frozenset(goal.request.from_holds)
    movable = body.get("movable", {})
    types, projects = movable.get("consumer_types"), movable.get("projects")
    moves = Moves(
        goal=goal,
        movable=Movable(
            consumer_types=None if types is None else frozenset(types),
            projects=None if projects is None else frozenset(projects),
            excepted=frozenset(uuids_of(movable.get("except", ()))),
        ),
        rules=read.rules,
        max_moves=body.get("max_moves", _DEFAULT_MOVES),
        both_at_once=body.get("both_at_once", True),
        explain=body.get("explain", False),
    )
    planner = partial(_planner, moves, end_of_plan(call, asked))
    plan = planned(call, read, planner, asked, named)
    return Reply(body=plan, is_ready_made=True)


def _goal(call: Call, goal: Mapping[str, Any], queries: Queries) -> Goal:
    """Read a goal.

    Raises:
        ApiError: 400, 403.
    """
    if "empty" in goal:
        return Empty(providers=uuids_of(goal["empty"]))
    if "empty_aggregate" in goal:
        return Empty(aggregate=goal["empty_aggregate"])
    if "leave" in goal:
        return Empty(leave=True)
    if "fit" in goal:
        request = queries.at("goal.fit.query", goal["fit"]["query"])
        require_may_draw(call, request)
        return Fit(replace(request, limit=None), goal["fit"]["amount"])
    mix = queries.mix(goal["keep"]["mix"])
    requests = tuple((part.request, part.weight) for part in mix.requests.values())
    return Keep(requests, goal["keep"].get("empty_trees", False))


def _planner(
    moves: Moves, end: float, forest: Forest, consumers: Consumers, budget: Budget
) -> Document:
    return make_plan(forest, consumers.values(), moves, budget, end)
