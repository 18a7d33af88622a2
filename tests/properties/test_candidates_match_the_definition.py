# SPDX-License-Identifier: Apache-2.0
"""The search gives exactly the candidates that the formal definition has, for any world."""

import os

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import Found, ask, every_path, forest_of, lowered
from tests.reference.candidates import Reference, TooManyError
from tests.reference.strategies import (
    cards,
    consuming,
    divided,
    extended_requests,
    requests,
    worlds,
)
from tests.tiers import many_examples

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "400"))
REQUESTS_EACH = 8
MOST_COMBINATIONS = 3000


@st.composite
def questions(draw, kind, are_consuming):
    """A world and some requests."""
    world = draw(worlds())
    if are_consuming:
        world = draw(consuming(world))
    return world, [draw(kind(world)) for _ in range(REQUESTS_EACH)]


@every_path
def test_candidates_and_summaries_match_the_reference(sizes):
    check(requests, sizes)


@pytest.mark.slow
@every_path
def test_candidates_with_extension_parameters_match_the_reference(sizes):
    check(extended_requests, sizes)


@pytest.mark.slow
@every_path
@pytest.mark.parametrize("kind", [requests, extended_requests])
def test_candidates_with_consuming_inventories_match_the_reference(kind, sizes):
    check(kind, sizes, are_consuming=True)


@every_path
def test_split_amounts_match_the_reference(sizes):
    compare_many(divided().map(lambda question: (question[0], [question[1]])), sizes)


@every_path
def test_groups_consuming_one_inventory_match_the_reference(sizes):
    compare_many(cards().map(lambda question: (question[0], [question[1]])), sizes)


def check(kind, sizes, *, are_consuming=False):
    """Compare the answers to some requests of a kind in many worlds."""
    compare_many(questions(kind, are_consuming), sizes)


def compare_many(asked, sizes):
    """Compare answers in many worlds, with the usual thresholds or lower ones."""

    @many_examples(WORLDS if not sizes else max(WORLDS // 4, 1))
    @given(asked)
    def compare_each(question):
        compare_all(*question)

    with lowered(sizes):
        compare_each()


def compare_all(world, asked):
    reference = Reference(world)
    forest = forest_of(world)
    for request in asked:
        try:
            expected = reference.candidates(request, MOST_COMBINATIONS)
        except TooManyError:
            continue
        event("some candidates" if expected else "no candidate")
        if any(len(providers) > 1 for _, mapping in expected for _, providers in mapping):
            event("a group with several providers")
        compare(world, reference, forest, request, expected)


def compare(world, reference, forest, request, expected):
    body = ask(forest, request)
    result = Found(world, body)
    assert result.candidates == expected, difference(world, request, result.candidates, expected)
    assert len(result.listed) == len(expected), "a candidate comes twice"
    summaries = reference.summaries(expected, expected, nested=request.nested)
    assert result.summaries.keys() == summaries, (str(world), request)
    for name, summary in result.summaries.items():
        assert summary["resources"] == {
            one: {
                "capacity": int((stock.total - stock.reserved) * stock.allocation_ratio),
                "used": reference.used(name, one),
            }
            for one, stock in reference.P[name].stock.items()
        }
        assert set(summary["traits"]) == reference.P[name].traits
    assert ask(forest, request) == body, "the same question has another answer"
    for limit in {1, max(len(expected) // 2, 1)}:
        compare_limited(world, reference, forest, request, expected, limit)


def compare_limited(world, reference, forest, request, expected, limit):
    for options in ({}, {"breadth_first": True}, {"randomize": True}):
        result = Found(world, ask(forest, request, limit, **options))
        where = (str(world), request, limit, options)
        assert result.candidates <= expected, where
        assert len(result.listed) == len(result.candidates) == min(limit, len(expected)), where
        summaries = reference.summaries(expected, result.candidates, nested=request.nested)
        assert result.summaries.keys() == summaries, where


def difference(world, request, found, expected):
    """Show a disagreement so that one can see it."""
    return "\n".join(
        [
            "The search and the definition disagree.",
            str(world),
            str(request),
            f"only the search has {sorted(map(str, found - expected))}",
            f"only the definition has {sorted(map(str, expected - found))}",
        ]
    )
