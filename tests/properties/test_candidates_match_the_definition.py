# SPDX-License-Identifier: Apache-2.0
"""The search gives exactly the candidates that the formal definition has, for any world."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import FoundCandidates, ask, every_path, forest_of, lowered
from tests.reference.candidates import Reference, TooManyError
from tests.reference.strategies import (
    cards,
    compared_devices,
    conditioned,
    consuming,
    divided,
    enlarged,
    extended_requests,
    requests,
    tolerating,
    worlds,
)
from tests.tiers import many_worlds

WORLDS = 400
REQUESTS_EACH = 8
MOST_COMBINATIONS = 3000


@st.composite
def several(draw, kind, change=st.just, count=REQUESTS_EACH):
    """A world, changed by a strategy, and requests of a kind."""
    world = draw(change(draw(worlds())))
    return world, [draw(kind(world)) for _ in range(count)]


def any_requests(world):
    return st.one_of(requests(world), extended_requests(world))


def with_one_request(question):
    """The question with its request as the only one of a list."""
    world, request = question
    return world, [request]


QUESTIONS = {
    "standard": several(requests),
    "split amounts": divided().map(with_one_request),
    "groups that consume one inventory": cards().map(with_one_request),
    "extension": several(extended_requests),
    "comparisons": compared_devices(),
    "consumption": several(any_requests, consuming),
    "conditions": several(lambda world: tolerating(any_requests(world)), conditioned),
    "large amounts": several(lambda world: enlarged(any_requests(world))),
}


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in list(QUESTIONS)[3:]]


@every_path
@pytest.mark.parametrize("kind", [*list(QUESTIONS)[:3], *SLOW])
def test_candidates_and_summaries_match_the_reference(kind, sizes):
    @many_worlds(WORLDS, share=4 if sizes else 1)
    @given(QUESTIONS[kind])
    def compare_each(question):
        compare_all(*question)

    with lowered(sizes):
        compare_each()


def compare_all(world, requests):
    reference = Reference(world)
    forest = forest_of(world)
    for request in requests:
        try:
            # The definition tries every part of an amount.
            expected = (
                set()
                if is_too_large(request)
                else reference.candidates(request, MOST_COMBINATIONS)
            )
        except TooManyError:
            continue
        event("some candidates" if expected else "no candidate")
        if any(len(providers) > 1 for _, mapping in expected for _, providers in mapping):
            event("a group with several providers")
        compare(world, reference, forest, request, expected)


def is_too_large(request):
    """Return whether an amount exceeds what all providers of a world have together."""
    return any(amount > 10**4 for group in request.groups for amount in group.resources.values())


def compare(world, reference, forest, request, expected):
    body = ask(forest, request)
    result = FoundCandidates(world, body)
    assert result.candidates == expected, difference(world, request, result.candidates, expected)
    assert len(result.listed) == len(expected), "a candidate comes twice"
    summaries = reference.summaries(expected, expected, nested=request.nested)
    assert result.summaries.keys() == summaries, (str(world), request)
    for name, summary in result.summaries.items():
        assert summary["resources"] == {
            class_name: {
                "capacity": int((stock.total - stock.reserved) * stock.allocation_ratio),
                "used": reference.used(name, class_name),
            }
            for class_name, stock in reference.P[name].stock.items()
        }
        assert set(summary["traits"]) == reference.P[name].traits
    assert ask(forest, request) == body, "the same question has another answer"
    for limit in {1, max(len(expected) // 2, 1), max(len(expected) - 1, 1)}:
        compare_limited(world, reference, forest, request, expected, limit)


def compare_limited(world, reference, forest, request, expected, limit):
    for options in ({}, {"breadth_first": True}, {"randomize": True}):
        result = FoundCandidates(world, ask(forest, request, limit, **options))
        where = (str(world), request, limit, options)
        assert result.candidates <= expected, where
        if "randomize" not in options:
            everything = FoundCandidates(world, ask(forest, request, **options)).listed
            assert result.listed == everything[:limit], where
            capped = FoundCandidates(world, ask(forest, request, maximum=limit, **options))
            assert capped.listed == everything[:limit], where
        assert len(result.listed) == len(result.candidates) == min(limit, len(expected)), where
        summaries = reference.summaries(expected, result.candidates, nested=request.nested)
        assert result.summaries.keys() == summaries, where


def difference(world, request, actual, expected):
    """Show a disagreement so that one can see it."""
    return "\n".join(
        [
            "The search and the definition disagree.",
            str(world),
            str(request),
            f"only the search has {sorted(map(str, actual - expected))}",
            f"only the definition has {sorted(map(str, expected - actual))}",
        ]
    )
