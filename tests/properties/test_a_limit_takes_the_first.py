# SPDX-License-Identifier: Apache-2.0
"""`limit=N` returns the first N candidates of the unlimited answer (contract page 90, section 6)."""

import os

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import Found, ask, every_path, forest_of, lowered
from tests.reference.candidates import Reference
from tests.reference.strategies import consuming_at_times, extended_requests, requests, worlds
from tests.tiers import many_examples

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "100"))
REQUESTS_EACH = 4
MOST_CANDIDATES = 60
LIMITS_TRIED = 25


@st.composite
def questions(draw):
    world = draw(consuming_at_times(worlds()))
    kinds = st.one_of(requests(world), extended_requests(world))
    return world, [draw(kinds) for _ in range(REQUESTS_EACH)]


some_worlds = many_examples(WORLDS)


@pytest.mark.slow
@pytest.mark.parametrize("breadth_first", [False, True])
@every_path
def test_limited_response_is_a_prefix_of_the_unlimited_one(breadth_first, sizes):
    @some_worlds
    @given(questions())
    def check(question):
        world, asked = question
        forest = forest_of(world)
        for request in asked:
            compare(world, forest, request, breadth_first)

    with lowered(sizes):
        check()


def compare(world, forest, request, breadth_first):
    everything = Found(world, ask(forest, request, breadth_first=breadth_first))
    count = len(everything.listed)
    if not 1 < count <= MOST_CANDIDATES:
        return
    event("several candidates")
    reference = Reference(world)
    # From 1.29 the summaries of the trees that the candidates use; before, of all candidates'.
    for limit in sorted({1 + number * count // LIMITS_TRIED for number in range(LIMITS_TRIED)}):
        where = (str(world), request, limit)
        result = Found(world, ask(forest, request, limit, breadth_first=breadth_first))
        assert result.listed == everything.listed[:limit], where
        shown = reference.summaries(
            everything.candidates, result.candidates, nested=request.nested
        )
        assert result.summaries.keys() == shown, where
        capped = Found(world, ask(forest, request, maximum=limit, breadth_first=breadth_first))
        assert capped.listed == everything.listed[:limit], where
