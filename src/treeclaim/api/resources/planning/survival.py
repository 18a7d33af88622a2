# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/survival (contract page 101, section 4)."""

from functools import partial

from treeclaim.api.protocol.operations import Answer, Call, Reply, Versioned, operation
from treeclaim.api.protocol.request.schemas import BOOLEAN, INTEGER, STRING, TEXT_OR_NULL, record
from treeclaim.api.protocol.request.validation import MOST_VALUES_IN_BULK
from treeclaim.api.resources.allocations.keeping import sources_of
from treeclaim.api.resources.allocations.schemas import FROM_HOLDS
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.candidates.queries import refusing_queries
from treeclaim.api.resources.placing.schemas import DOMAINS, MOST_PARTS
from treeclaim.api.resources.planning import given as forms
from treeclaim.api.resources.planning.given import TOLD, domains_of
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
from treeclaim.forest.planning.survival import check_survival
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import Document, Failures

_DEFAULT_PARTS = 100


_BODY = record(
    {"domains": DOMAINS},
    {
        "consumer_types": CONSUMER_TYPES,
        "from_holds": FROM_HOLDS,
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_PARTS},
        "all": BOOLEAN,
        **MEMBERS,
    },
)


SURVIVAL = Answer(
    body=record(
        {
            "survive": INTEGER,
            "fail": INTEGER,
            "unknown": INTEGER,
            "of": INTEGER,
            "complete": BOOLEAN,
            "domains": {
                "type": "array",
                "items": record(
                    {
                        "uuid": STRING,
                        "name": TEXT_OR_NULL,
                        "survives": {"type": ["boolean", "null"]},
                        "consumers": INTEGER,
                        "without_request": INTEGER,
                        "unplaced": INTEGER,
                        "first_unplaced": TEXT_OR_NULL,
                        "proven": BOOLEAN,
                    },
                    {"explanation": candidates.EXPLANATION.body or {}},
                ),
            },
        },
        {"given": TOLD},
    ),
    dated=False,
)
"""The failures that are survived."""


@operation(
    "POST /treeclaim/survival",
    policy="placement:allocation_candidates:list",
    answers=(SURVIVAL,),
    body=Versioned(_BODY),
    most_values=MOST_VALUES_IN_BULK,
    forms=forms.QUERIES,
    needs_opt_in=True,
    only_reads=True,
)
def survive_failures(call: Call) -> Reply:
    """Say which failures are survived: whether all consumers find a place elsewhere."""
    body = call.json()
    asked = asked_for_plan(call)
    types = body.get("consumer_types")
    holds = sources_of(call, body.get("from_holds", ()))
    with refusing_queries():
        read = plan_call(call, body, asked)
    failures = Failures(
        domains=domains_of(body["domains"]),
        types=None if types is None else frozenset(types),
        from_holds=holds,
        rules=read.rules,
        limit=int(body.get("limit", _DEFAULT_PARTS)),
        shows_all=body.get("all", False),
        explain=body.get("explain", False),
    )
    planner = partial(_planner, failures, end_of_plan(call, asked))
    plan = planned(call, read, planner, asked, frozenset(holds))
    return Reply(body=plan, is_ready_made=True)


def _planner(
    failures: Failures, end: float, forest: Forest, consumers: Consumers, budget: Budget
) -> Document:
    with budget.ending(end):
        return check_survival(forest, consumers, failures, budget)
