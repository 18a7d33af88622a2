# SPDX-License-Identifier: Apache-2.0
"""Soft rules are dropped one after the other, the last first (contract page 98, section 4)."""

import pytest

from tests.forest.building import complete, provider_uuid, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.placer import Placer
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.placing import Placing, PlacingRequest, Rule
from treeclaim.model.request import CandidateRequest, RequestGroup

RACK = "rack"
IN_RACK, ELSEWHERE = 1, 2


@pytest.fixture
def forest():
    """A host in a rack, and one in none."""
    made = Forest()
    stock = {"VCPU": 8}
    made.apply(
        complete(
            [
                record(IN_RACK, inventories=stock, aggregates=(RACK,)),
                record(ELSEWHERE, inventories=stock),
            ]
        )
    )
    return made


def rule(domains, most):
    """A soft rule with at most so many in a domain."""
    return Rule(
        domains=domains,
        max_per_domain=most,
        requests=frozenset({0}),
        soft=True,
    )


ONE_A_TREE = rule(None, 1)
IN_THE_RACK = rule((RACK,), 5)


def second_of(forest, *rules):
    """Where the second of two consumers goes, and what it drops."""
    wanted = CandidateRequest((RequestGroup("", {"VCPU": 1}),))
    request = PlacingRequest((wanted,), ("first", "second"), "p", "u", "t")
    placed = Placer(forest, Placing((request,), rules), {}, Budget()).placed().placed
    assert set(placed["first"].allocations) == {provider_uuid(IN_RACK)}
    assert placed["first"].dropped == ()
    (given,) = placed["second"].allocations
    return given, placed["second"].dropped


def test_last_of_two_blocking_soft_rules_is_dropped(forest):
    elsewhere, in_rack = provider_uuid(ELSEWHERE), provider_uuid(IN_RACK)
    assert second_of(forest, ONE_A_TREE, IN_THE_RACK) == (elsewhere, (1,))
    assert second_of(forest, IN_THE_RACK, ONE_A_TREE) == (in_rack, (1,))
