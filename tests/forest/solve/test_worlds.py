# SPDX-License-Identifier: Apache-2.0
"""The search finds in every small world what a person wrote down, whichever way it goes."""

import pytest

from tests.properties.forest_adapter import LOWERED, Found, ask, forest_of, lowered
from tests.worlds.table import IDS, QUESTIONS


@pytest.mark.parametrize("breadth_first", [False, True], ids=["in order", "breadth first"])
@pytest.mark.parametrize("thresholds", [{}, LOWERED], ids=["usual", "lowered"])
@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_search_returns_each_candidate_in_the_table_once(
    small, question, thresholds, breadth_first
):
    with lowered(thresholds):
        body = ask(forest_of(small.world), question.request, breadth_first=breadth_first)
    result = Found(small.world, body)
    assert result.candidates == question.candidates
    assert len(result.listed) == len(question.candidates)


@pytest.mark.parametrize(("small", "question"), QUESTIONS, ids=IDS)
def test_repeated_search_returns_the_same_response(small, question):
    """The caches of the question are filled by then."""
    forest = forest_of(small.world)
    assert ask(forest, question.request) == ask(forest, question.request)
