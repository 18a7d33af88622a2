# SPDX-License-Identifier: Apache-2.0
"""An ordered search gives the beginning of the whole list, sorted by score (page 98, section 2)."""

from dataclasses import replace

import pytest
from hypothesis import event
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    FoundCandidates,
    ask,
    forest_of,
    list_unordered,
    property_of,
    rank,
)
from tests.reference.candidates import Reference, TooManyError
from tests.reference.scores import Scores
from tests.reference.strategies import (
    clouds,
    consuming_at_times,
    divided,
    easy_requests,
    ordered_requests,
    rivals,
    terms_for,
    worlds,
)

WORLDS = 25
REQUESTS_EACH = 4
MOST_CANDIDATES = 200


@st.composite
def questions(draw):
    kind = draw(st.integers(0, 6))
    if kind < 2:
        world, request = draw(rivals())
        return world, [request]
    if kind == 2:
        world, request = draw(divided())
        terms = terms_for(request).filter(lambda term: term[0] != "preferred")
        return world, [replace(request, order=(draw(terms),)) for _ in range(2)]
    if draw(st.booleans()):
        world = draw(clouds())
        return world, [draw(easy_requests(world)) for _ in range(REQUESTS_EACH)]
    world = draw(consuming_at_times(worlds()))
    return world, [draw(ordered_requests(world)) for _ in range(REQUESTS_EACH)]


def scored(world, request):
    """Return pairs of score and candidate in the right order; None if they cannot be compared."""
    scores = Scores(Reference(world), request)
    try:
        return rank(list_unordered(world, request, MOST_CANDIDATES), scores.score)
    except TooManyError:
        return None


def comparable_searches(question):
    """Yield a function that searches by options, the scored candidates of a request, and its text."""
    world, requests = question
    forest = forest_of(world)
    for request in requests:
        expected = scored(world, request)
        if expected is not None:

            def search(limit=None, *, request=request, **options):
                return FoundCandidates(world, ask(forest, request, limit, **options))

            yield search, expected, f"{world} {request}"


def limits_of(expected):
    """Return limits to search with."""
    return {None, 1, 2, len(expected) // 2 or 1}


@pytest.mark.slow
@property_of(WORLDS, questions())
def test_candidates_are_ordered_by_score_and_ties_by_default_order(question):
    for search, expected, where in comparable_searches(question):
        event("several scores" if len({score for score, _ in expected}) > 1 else "one score")
        for limit in limits_of(expected):
            result = search(limit)
            assert result.listed == [candidate for _, candidate in expected[:limit]], where
            assert result.scores == [float(score) for score, _ in expected[:limit]], where
            assert not result.is_approximate, where
        capped = search(maximum=2, breadth_first=True, randomize=True)
        assert capped.listed == [candidate for _, candidate in expected[:2]]


LOW_LIMITS = {"order.ordered_search.MOST_EXACT": 4, "order.ordered_search.TOGETHER": 2}
"""A limit of candidates that is exceeded by the trees of small worlds."""


@pytest.mark.slow
@property_of(WORLDS, questions(), **LOW_LIMITS)
def test_trees_with_very_many_candidates_are_searched_heuristically(question):
    """Rule 3: as many candidates as there are, with right scores; exact unless the answer is marked approximate."""
    for search, expected, where in comparable_searches(question):
        score_of = {candidate: score for score, candidate in expected}
        for limit in limits_of(expected):
            result = search(limit)
            assert len(result.candidates) == len(result.listed) == len(expected[:limit]), where
            assert result.candidates <= score_of.keys(), where
            scores = [float(score_of[candidate]) for candidate in result.listed]
            assert result.scores == scores == sorted(scores, reverse=True), where
            event("approximate" if result.is_approximate else "exact")
            if not result.is_approximate:
                assert result.listed == [candidate for _, candidate in expected[:limit]], where
