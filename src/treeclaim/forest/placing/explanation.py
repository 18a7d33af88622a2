# SPDX-License-Identifier: Apache-2.0
"""Why a consumer of a call finds nothing (contract page 98, section 4; page 97, section 3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explained
from treeclaim.forest.placing.placer import Attempt, Placer
from treeclaim.forest.placing.queries import Query, query_of
from treeclaim.forest.placing.rules import RuleState
from treeclaim.model.reasons import Reason


def explanation_of(placer: Placer, attempt: Attempt, budget: Budget) -> dict[str, Any] | None:
    """Explain the first unplaced consumer's first alternative, beside what was placed before it.

    The rules close the funnel, in their order; those that are soft were dropped.
    """
    if attempt.request is None or attempt.scratch is None:
        return None
    number = attempt.request
    request = placer.placing.requests[number].alternatives[0]
    document = explained(attempt.scratch.forest, request, Focus(), budget)
    rules = [rule for rule in attempt.rules if rule.concerns(number) and not rule.is_soft]
    counts = _left(placer, query_of(attempt.scratch, request, budget), rules, number)
    before = document["trees"]["matching"]
    for rule, after in zip(rules, counts, strict=True):
        if after < before:
            document["funnel"].append(
                {
                    "group": None,
                    "reason": Reason.RULE.value,
                    "detail": {"rule": rule.number},
                    "trees_before": before,
                    "trees_after": after,
                }
            )
        before = after
    document["trees"]["matching"] = before
    document["feasible"] = before > 0
    return document


def _left(placer: Placer, query: Query, rules: Sequence[RuleState], number: int) -> list[int]:
    """Return how many trees have a candidate that keeps the first rule, the first two, and so on."""
    eligible = placer.eligible_domains(number, rules)
    matching = query.matching()
    if matching is not None:
        counts = []
        for rule in rules:
            matching = matching & rule.mask(number, eligible)
            counts.append(int(np.count_nonzero(matching)))
        return counts
    kept = np.zeros(len(placer.forest.order.roots), dtype=np.int64)
    for anchor, candidate in query.each_of_anchors():
        verdicts = [rule.keeps(candidate.trees, eligible) for rule in rules]
        kept[anchor] = max(kept[anchor], (*verdicts, False).index(False))
    return [int(np.count_nonzero(kept > at)) for at in range(len(rules))]
