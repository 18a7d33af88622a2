# SPDX-License-Identifier: Apache-2.0
"""The explanation of a consumer without a place is true, its rules included (page 98, section 4)."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, event, given, settings

from tests.properties.test_explanations_are_true import lessened
from tests.properties.test_placing_is_that_of_one_after_the_other import (
    ordered,
    placed,
    questions,
)
from tests.reference.blocking import anchored_without
from tests.reference.candidates import TooManyError
from tests.reference.placing import Placer
from tests.reference.world import uuid_of
from tests.tiers import many_worlds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.explanation import explain_attempt

MOST_COMBINATIONS = 500


@pytest.mark.slow
@settings(many_worlds(60), suppress_health_check=list(HealthCheck))
@given(questions())
def test_rules_are_explained_like_constraints(question):
    world, call = question
    assume(call.rules and not any(rule.same_domain for rule in call.rules))
    # The definition of explanations without some constraints knows no conditions.
    assume(not any(provider.conditions for provider in world.providers))
    try:
        result = compare(world, replace(call, partial=False))
        event("all placed" if result is None else f"rule {'rule' in str(result['advice'])}")
    except TooManyError:
        event("too many")


class JudgedPlacer(Placer):
    """Placing, in which a candidate that takes nothing counts as one of its anchor."""

    anchor = None

    def trees(self, alloc):
        return super().trees(alloc) or {self.anchor}


def compare(world, call):
    """Compare the explanation of a call with the definition, if a consumer finds nothing."""
    reference = JudgedPlacer(world, call, ordered)
    outcome = reference.place()
    if not outcome.unplaced:
        return None
    placer, attempt = placed(world, call, explain=True)
    result = explain_attempt(placer, attempt, Budget())
    number = attempt.request
    request = call.requests[number].alternatives[0]
    rules = [
        at
        for at, rule in enumerate(call.rules)
        if reference.concerns(rule, number) and not rule.soft
    ]

    def matching(less, without, kept_rules):
        result = set()
        for anchor, (alloc, _) in anchored_without(
            outcome.world, less, without, MOST_COMBINATIONS
        ):
            reference.anchor = anchor
            if all(reference.keeps(at, number, alloc, None) for at in kept_rules):
                result.add(uuid_of(anchor))
        return result

    where = (str(outcome.world), call, result)
    assert result["trees"]["matching"] == len(matching(request, [], rules)), where
    expected = []
    if not result["feasible"]:
        for text, less, without in lessened(world, request):
            expected.append((text, matching(less, without, rules)))
        for omitted in rules:
            remaining = [at for at in rules if at != omitted]
            expected.append((f"rule {omitted}", matching(request, [], remaining)))
    sentences = [
        f"Without {text} {len(advice)} {'tree' if len(advice) == 1 else 'trees'} would match."
        for text, advice in expected
        if advice
    ]
    assert result["advice"] == sentences, (where, sentences)
    for tree in result["nearest"]:
        blocking = tree["blocked_by"]
        kept_rules = set(rules) - {constraint["detail"].get("rule") for constraint in blocking}
        without = [
            (constraint["reason"], constraint["group"], constraint["detail"])
            for constraint in blocking
        ]
        without = [constraint for constraint in without if constraint[0] != "rule"]
        assert tree["root_provider"]["uuid"] in matching(request, without, kept_rules), (
            where,
            tree,
        )
    return result
