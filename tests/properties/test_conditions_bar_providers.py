# SPDX-License-Identifier: Apache-2.0
"""Providers with conditions, and those below them, give nothing to who does not tolerate these (page 102)."""

import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.forest.building import news
from tests.properties.forest_adapter import ask, candidate_request, every_path, forest_of, lowered
from tests.properties.test_candidates_match_the_definition import compare_all
from tests.reference.strategies import extended_requests, ordered_requests, requests, worlds
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.model.changes import Cursor

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "40"))
KEYS = ("A", "B")
SOME = st.sets(st.sampled_from(KEYS), max_size=2).map(frozenset)
FEW = st.one_of(st.just(frozenset()), st.just(frozenset()), SOME)
BEGINNING = Cursor({}, None, frozenset())


@st.composite
def conditioned(draw):
    """A world in which some providers have conditions."""
    world = draw(worlds())
    providers = tuple(replace(provider, conditions=draw(FEW)) for provider in world.providers)
    event("conditions" if any(provider.conditions for provider in providers) else "no condition")
    return replace(world, providers=providers)


def tolerating(draw, request):
    """Return the same request, with groups that tolerate keys."""
    groups = tuple(replace(group, tolerates=draw(FEW)) for group in request.groups)
    return replace(request, groups=groups)


@st.composite
def questions(draw):
    """A world and some requests."""
    world = draw(conditioned())
    kinds = st.one_of(requests(world), extended_requests(world))
    return world, [tolerating(draw, draw(kinds)) for _ in range(4)]


@st.composite
def changed(draw):
    """A world, the same with other conditions, and requests."""
    world = draw(conditioned())
    after = tuple(replace(provider, conditions=draw(FEW)) for provider in world.providers)
    kinds = st.one_of(requests(world), extended_requests(world), ordered_requests(world))
    asked = [replace(tolerating(draw, draw(kinds)), nested=True) for _ in range(3)]
    return world, replace(world, providers=after), asked


def many(strategy):
    """Try many of something."""

    def decorated(test):
        checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
        limits = settings(max_examples=WORLDS, deadline=None, suppress_health_check=checks)
        return limits(given(strategy)(test))

    return decorated


@pytest.mark.slow
@every_path
def test_candidates_with_conditions_match_the_reference(sizes):
    @many(questions())
    def compare_each(question):
        compare_all(*question)

    with lowered(sizes):
        compare_each()


def capacity(forest, request):
    """Return how many consumers fit now, and how many if nothing were allocated."""
    return count_capacity(forest, candidate_request(request), CapacityLimits((), 10), UNBOUNDED)


@pytest.mark.slow
@many(changed())
def test_cached_results_follow_conditions(question):
    before, after, asked = question
    forest, fresh = forest_of(before), forest_of(after)
    for request in asked:
        ask(forest, request)
        capacity(forest, request)
    records = fresh.records()
    forest.apply(news(*records))
    for request in asked:
        assert ask(forest, request) == ask(fresh, request), (str(before), str(after), request)
        assert capacity(forest, request) == capacity(fresh, request), (str(after), request)


@pytest.mark.slow
@many(changed())
def test_fit_when_empty_ignores_conditions(question):
    world, _, asked = question
    bare = forest_of(
        replace(
            world,
            providers=tuple(
                replace(provider, conditions=frozenset()) for provider in world.providers
            ),
        )
    )
    for request in asked:
        mine, free = capacity(forest_of(world), request), capacity(bare, request)
        assert mine["when_empty"] == free["when_empty"], (str(world), request)
        if not request.can_split:
            assert mine["at_most"] <= free["at_most"], (str(world), request)
