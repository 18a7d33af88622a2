# SPDX-License-Identifier: Apache-2.0
"""POST /treeclaim/survival (contract page 101, section 4)."""

from pydantic import Field

from treeclaim.api.protocol.operations import Answer, Call, operation
from treeclaim.api.protocol.request.bodies import Domains, HoldUuids, Parts
from treeclaim.api.protocol.request.schemas import Shape
from treeclaim.api.resources.allocations.hold_terms import require_sources
from treeclaim.api.resources.candidates import schemas as candidates
from treeclaim.api.resources.planning.assumptions import ASSUMED
from treeclaim.api.resources.planning.plans import ConsumerTypes, PlanBody, PlanCall
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.planning.consumers import Consumers
from treeclaim.forest.planning.survival import check_survival
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.planning import Document, Failures


class SurvivalBody(PlanBody):
    """The failures to examine, and the consumers that must survive them."""

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
    dated=False,
    only_reads=True,
)
def survive_failures(call: Call, body: SurvivalBody) -> Answer:
    """Check which failures are survived: whether all consumers find a place elsewhere."""
    holds = require_sources(call, body.from_holds)
    plan = PlanCall(call, body)
    failures = Failures(
        domains=body.domains or None,
        types=body.consumer_types,
        from_holds=holds,
        rules=plan.rules,
        limit=body.limit,
        shows_all=body.shows_all,
        explain=body.explain,
    )

    def check(forest: Forest, consumers: Consumers, budget: Budget) -> Document:
        with budget.ending(plan.end):
            return check_survival(forest, consumers, failures, budget)

    return plan.answer(check, holds=holds)
