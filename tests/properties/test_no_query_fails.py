# SPDX-License-Identifier: Apache-2.0
"""No valid query ends in an error, whatever the cloud is like (contract pages 97 and 98).

Searches, explanations, counts and placements are run until the cloud is full.
"""

from dataclasses import replace

from hypothesis import strategies as st

from tests.properties.forest_adapter import ask, candidate_request, forest_of, property_of
from tests.reference.strategies import consuming, device_clouds, device_requests, enlarged
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.placing.explanation import explain_attempt
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest

CONSUMERS = tuple(f"consumer {number}" for number in range(12))


@st.composite
def questions(draw):
    """A cloud, and some requests."""
    world = draw(device_clouds())
    if draw(st.integers(0, 3)) == 0:
        world = draw(consuming(world))
    kind = device_requests(world)
    return world, [draw(st.one_of(kind, kind, kind, enlarged(kind))) for _ in range(3)]


def answer_everything(world, request):
    """Search, explain, count, place and explain what found no place; return how many fit."""
    forest, unordered = forest_of(world), candidate_request(request)
    ask(forest, request)
    explain_request(forest, replace(unordered, order=None), Focus(nearest=50))
    counted = count_capacity(forest, unordered, CapacityLimits((), 100), Budget())
    consumers = PlacingRequest((unordered,), CONSUMERS, "project", "user", "INSTANCE")
    placer = ConsumerPlacer(
        forest, PlacingCall((consumers,), (), partial=True, explain=True), {}, Budget()
    )
    attempt = placer.place_all()
    explain_attempt(placer, attempt, Budget())
    assert len(attempt.placed) == min(counted["fits"], len(CONSUMERS))
    return counted["fits"]


@property_of(60, questions())
def test_every_query_is_answered(question):
    world, queries = question
    for request in queries:
        answer_everything(world, request)
