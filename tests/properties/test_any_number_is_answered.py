# SPDX-License-Identifier: Apache-2.0
"""An amount of any size, in any form of question, has the right answer (contract page 90, N6)."""

import os
from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    Found,
    ask,
    candidate_request,
    every_path,
    forest_of,
    lowered,
)
from tests.reference.candidates import Reference, TooManyError
from tests.reference.strategies import extended_requests, requests, worlds
from tests.tiers import many_examples
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explain_request

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "150"))
MOST_COMBINATIONS = 500
LARGE = st.one_of(
    st.sampled_from([2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64]),
    st.integers(1, 10**400 - 1),
)
OPTIONS = ({}, {"breadth_first": True}, {"randomize": True})


@st.composite
def questions(draw):
    """A world, and a request in which some amounts are large, often of the same class."""
    world = draw(worlds())
    request = draw(st.one_of(requests(world), extended_requests(world)))
    amounts = draw(st.lists(LARGE, min_size=1, max_size=3))
    groups = [
        replace(
            group,
            resources={
                name: draw(st.sampled_from([amount, *amounts]))
                for name, amount in group.resources.items()
            },
        )
        for group in request.groups
    ]
    return world, replace(request, groups=tuple(groups))


@pytest.mark.slow
@every_path
def test_amounts_of_any_size_match_the_reference(sizes):
    @many_examples(WORLDS if not sizes else WORLDS // 3)
    @given(questions())
    def check(question):
        compare(*question)

    with lowered(sizes):
        check()


def compare(world, request):
    forest = forest_of(world)
    large = {
        name
        for group in request.groups
        for name, amount in group.resources.items()
        if amount > 2**31
    }
    try:
        # The definition tries every part of an amount; nothing here gives so much together.
        expected = (
            set()
            if large & request.can_split
            else Reference(world).candidates(request, MOST_COMBINATIONS)
        )
    except TooManyError:
        return
    for options in OPTIONS:
        result = Found(world, ask(forest, request, limit=10**400, **options))
        assert result.candidates == expected, (str(world), request)


@pytest.mark.slow
@settings(max_examples=WORLDS, deadline=None)
@given(questions())
def test_amounts_of_any_size_are_explained(question):
    world, request = question
    asked = candidate_request(replace(request, nested=True))
    result = explain_request(forest_of(world), asked, Focus(nearest=50), Budget())
    assert result["funnel"] or result["feasible"]
    assert result["trees"]["matching"] == (
        result["funnel"][-1]["trees_after"] if result["funnel"] else result["trees"]["considered"]
    )
    orjson.dumps(result)
