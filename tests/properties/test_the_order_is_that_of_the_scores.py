# SPDX-License-Identifier: Apache-2.0
"""An ordered search gives the beginning of the whole list, sorted by score (page 98, section 2)."""

import os
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    LOWERED,
    FoundCandidates,
    ask,
    every_path,
    forest_of,
    lowered,
)
from tests.reference.candidates import Reference
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
from tests.tiers import many_examples

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "25"))
REQUESTS_EACH = 4
MOST_CANDIDATES = 200
DECIMALS = 12
NEARLY_HALF = 1e-3
"""A score so near to the middle between two roundings is rounded as arithmetic happens to go."""


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


some_worlds = many_examples(WORLDS)


@pytest.mark.slow
@every_path
def test_candidates_are_ordered_by_score_and_ties_by_default_order(sizes):
    check(compare, sizes)


FEW = {"order.ordered.MOST_EXACT": 4, "order.ordered.TOGETHER": 2}
"""A limit of candidates that is exceeded by the trees of small worlds."""


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [FEW, {**LOWERED, **FEW}], ids=["usual", "lowered"])
def test_trees_with_very_many_candidates_are_searched_heuristically(sizes):
    check(compare_heuristic, sizes)


def check(compare_one, sizes):
    """Compare the answers in many worlds, with some thresholds lowered."""

    @some_worlds
    @given(questions())
    def compare_each(question):
        world, queries = question
        forest = forest_of(world)
        for request in queries:
            compare_one(world, forest, request)

    with lowered(sizes):
        compare_each()


def compare_heuristic(world, forest, request):
    """Check rule 3: as many candidates as there are, with right scores; exact unless the answer says otherwise."""
    usual, scores = scored(world, forest, request)
    if scores is None:
        return
    score_of = dict(zip(usual, scores, strict=True))
    expected = sorted(scores, reverse=True)
    for limit in {None, 1, 2, len(usual) // 2 or 1}:
        where = (str(world), request, limit)
        result = FoundCandidates(world, ask(forest, request, limit))
        assert len(result.candidates) == len(result.listed) == len(usual[:limit]), where
        assert result.candidates <= score_of.keys(), where
        assert result.scores == [float(score_of[candidate]) for candidate in result.listed], where
        assert result.scores == sorted(result.scores, reverse=True), where
        event("approximate" if result.is_approximate else "exact")
        if not result.is_approximate:
            assert result.scores == [float(score) for score in expected[:limit]], where
            in_order = sorted(usual, key=lambda candidate: -score_of[candidate])
            assert result.listed == in_order[:limit], where


def scored(world, forest, request):
    """The candidates in the usual order, and their rounded scores; None if these cannot be compared."""
    usual = FoundCandidates(world, ask(forest, replace(request, order=(), preferred=()))).listed
    if len(usual) > MOST_CANDIDATES:
        return usual, None
    scores = Scores(Reference(world), request)
    exact = [scores.score(candidate) for candidate in usual]
    if any(abs(score * 10**DECIMALS % 1 - 0.5) < NEARLY_HALF for score in exact):
        return usual, None
    return usual, [round(score, DECIMALS) for score in exact]


def compare(world, forest, request):
    usual, scores = scored(world, forest, request)
    if scores is None:
        return
    expected = sorted(zip(scores, usual, strict=True), key=lambda pair: -pair[0])
    event("several scores" if len({score for score, _ in expected}) > 1 else "one score")
    for limit in {None, 1, 2, len(usual) // 2 or 1}:
        where = (str(world), request, limit)
        result = FoundCandidates(world, ask(forest, request, limit))
        assert result.listed == [candidate for _, candidate in expected[:limit]], where
        assert result.scores == [float(score) for score, _ in expected[:limit]], where
        assert not result.is_approximate, where
    capped = FoundCandidates(
        world, ask(forest, request, maximum=2, breadth_first=True, randomize=True)
    )
    assert capped.listed == [candidate for _, candidate in expected[:2]]
