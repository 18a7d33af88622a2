# SPDX-License-Identifier: Apache-2.0
"""The outcome of placing, and the explanation of an unplaced consumer (contract page 98, section 4).

A rule is a further constraint in the funnel, the nearest trees and the advice of an explanation (page 97, section 3).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import orjson

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.constraints import Constraint, Reason
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.placing.candidate import find_trees
from treeclaim.forest.placing.placer import Attempt, ConsumerPlacer
from treeclaim.forest.placing.rules import EligibleDomains, RuleState
from treeclaim.forest.solve.combine import combine_under
from treeclaim.forest.solve.problem import Problem, relate
from treeclaim.forest.split.splitting import Splitter
from treeclaim.forest.table.columns import Mask
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Placement
from treeclaim.model.request import CandidateRequest, SearchOptions


def explain_attempt(
    placer: ConsumerPlacer, attempt: Attempt, budget: Budget
) -> dict[str, Any] | None:
    """Explain the first alternative of the first unplaced consumer, beside the consumers placed before it.

    Soft rules are dropped. The strict rules end the funnel, in their order.
    """
    if attempt.request is None:
        return None
    request = placer.placing.requests[attempt.request].alternatives[0]
    forest, rules, eligible = placer.replay_failure(attempt)
    return explain_with_rules(forest, request, rules, budget, eligible)


def explain_with_rules(
    forest: Forest,
    request: CandidateRequest,
    rules: Sequence[RuleState],
    budget: Budget,
    eligible: EligibleDomains = MappingProxyType({}),
) -> dict[str, Any]:
    """Explain a request with rules, which end the funnel in their order.

    The Forest includes the consumers that were placed before.
    """

    def judge(
        forest: Forest,
        judged_request: CandidateRequest,
        rule_states: Sequence[RuleState],
        matching: Mask,
    ) -> Mask:
        with budget.scope():
            problem = relate(forest, judged_request, SearchOptions(), budget)
            # Without the constraint on resources no provider gives anything, and the anchor's tree counts.
            is_giving = problem.giving or problem.split_relations
            if not is_giving or not problem.may_leave_anchors:
                masks = [rule.find_open_trees(eligible) for rule in rule_states]
                permitted: Mask = np.logical_and.reduce([matching, *masks])
                return permitted
            permitted = np.zeros(len(matching), dtype=np.bool_)
            for anchor, rows in _draw_givers(problem):
                budget.check()
                if not permitted[anchor]:
                    trees = find_trees(forest, rows)
                    permitted[anchor] = all(rule.permits(trees, eligible) for rule in rule_states)
            return permitted

    constraints = [
        Constraint(Reason.RULE, None, rule, {"rule": rule.number}, f"rule {rule.number}")
        for rule in rules
    ]
    return explain_request(forest, request, Focus(), budget, rules=constraints, judge=judge)


def _draw_givers(problem: Problem) -> Iterator[tuple[int, list[int]]]:
    """Yield the anchor and the giving providers of each candidate, with repetitions under several anchors."""
    giving = list(problem.giving)
    if problem.plan.split:
        for anchor, divided in Splitter(problem).candidates_under():
            parts = [row for _, row, _ in divided.parts]
            yield anchor, [divided.chosen_rows[slot] for slot in giving] + parts
        return
    for block in combine_under(problem):
        yield from zip(block.tree.tolist(), block.chosen_rows[:, giving].tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class PlacingOutcome:
    """The outcome of a call, as a child process sends it to its parent; see `Attempt`.

    The explanation is that of the first unplaced consumer. `given` is the member of the response.
    """

    placed: Mapping[str, Placement]
    unplaced: tuple[str, ...]
    explanation: Mapping[str, Any] | None
    given: Mapping[str, Any] | None = None

    def serialize(self) -> bytes:
        """Return the outcome as JSON for `read`."""
        placed = list(self.placed.values())
        return orjson.dumps(
            {"placed": placed, "unplaced": self.unplaced, "explanation": self.explanation}
        )

    @classmethod
    def read(cls, document: bytes) -> "PlacingOutcome":
        """Read an outcome from JSON."""
        members = orjson.loads(document)
        placed = [Placement(**placement) for placement in members["placed"]]
        return cls(
            {placement.consumer: placement for placement in placed},
            tuple(members["unplaced"]),
            members["explanation"],
            members.get("given"),
        )
