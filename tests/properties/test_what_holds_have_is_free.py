# SPDX-License-Identifier: Apache-2.0
"""Held amounts are free for consumers that may draw from the hold, and for no other (page 100, section 2).

The definition is by brute force: the same question in a world where what these holds have is not
there.
"""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    FoundCandidates,
    ask,
    by_provider,
    candidate_request,
    forest_of,
    property_of,
)
from tests.reference.candidates import Reference
from tests.reference.strategies import any_requests, clouds, consuming_at_times, worlds
from tests.reference.world import uuid_of
from tests.tiers import many_worlds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.explain.explain import Focus, explain_request
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.forest.search import search
from treeclaim.forest.table.held import HeldAmounts
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest
from treeclaim.model.request import SearchOptions

WORLDS = 12
HOLDS = ("h1", "h2", "h3")


@st.composite
def questions(draw, count):
    """A world without holds, what three holds have in it, and some requests with their holds."""
    world = draw(consuming_at_times(st.one_of(worlds(), clouds())))
    places = [(provider.name, name) for provider in world.providers for name in provider.stock]
    if not places:
        return world, {hold: {} for hold in HOLDS}, []
    amounts = st.dictionaries(st.sampled_from(places), st.integers(1, 6), max_size=4)
    holds = {hold: draw(amounts) for hold in HOLDS}
    kinds = any_requests(world)
    named_holds = st.lists(st.sampled_from(HOLDS), max_size=2, unique=True).map(tuple)
    return (
        world,
        holds,
        draw(st.lists(st.tuples(kinds, named_holds), min_size=count, max_size=count)),
    )


def with_used(world, parts):
    added = Counter()
    for part in parts:
        added.update(part)
    return world.using(lambda p, c, used: used + added[p, c])


def held_by(holds):
    return HeldAmounts({hold: by_provider(part) for hold, part in holds.items()})


@pytest.mark.slow
@property_of(WORLDS, questions(3))
def test_drawing_from_holds_equals_a_world_without_them(question):
    world, holds, draws = question
    plain = forest_of(with_used(world, holds.values()))
    forest = plain.make_view(held_amounts=held_by(holds))
    limits, focus = CapacityLimits((), 10), Focus(3)

    def count(where, request):
        return count_capacity(where, request, limits, Budget())

    for request, named_holds in draws:
        unnamed_amounts = [part for hold, part in holds.items() if hold not in named_holds]
        without = forest_of(with_used(world, unnamed_amounts))
        usual = candidate_request(request)
        drawing = replace(usual, from_holds=named_holds)
        before, usual_count = ask(forest, request), count(plain, usual)
        answer = answered(forest, drawing)
        event("some candidates" if b'"mappings"' in answer else "no candidate")
        where = (str(world), holds, named_holds)
        assert but_used(answer) == but_used(answered(without, usual)), where
        assert count(forest, drawing) == count(without, usual), where
        explained = explain_request(forest, drawing, focus)
        assert explained == explain_request(without, usual, focus), where
        # A question that draws, and one that does not, never share a cached response.
        assert ask(forest, request) == before == ask(plain, request)
        assert count(plain, usual) == usual_count


def answered(forest, request):
    return b"".join(search(forest, request, SearchOptions()).pieces())


def but_used(body):
    """An answer without what its summaries show as used; the text is the same else."""
    document = json.loads(body)
    for summary in document["provider_summaries"].values():
        for amounts in summary["resources"].values():
            amounts.pop("used")
    return json.dumps(document)


@pytest.mark.slow
@many_worlds(WORLDS)
@given(questions(1))
def test_summaries_count_held_amounts_as_used(question):
    world, holds, draws = question
    used_world = with_used(world, holds.values())
    reference = Reference(used_world)
    for request, named_holds in draws:
        drawing = replace(candidate_request(request), from_holds=named_holds)
        body = answered(forest_of(used_world).make_view(held_amounts=held_by(holds)), drawing)
        for name, summary in FoundCandidates(used_world, body).summaries.items():
            (provider,) = [
                candidate for candidate in used_world.providers if candidate.name == name
            ]
            assert {c: amounts["used"] for c, amounts in summary["resources"].items()} == {
                c: reference.used(name, c) for c in provider.stock
            }


@pytest.mark.slow
@property_of(WORLDS, questions(4))
def test_placements_draw_from_holds_first_and_deplete_them(question):
    world, holds, draws = question
    used_world = with_used(world, holds.values())
    placing_requests = [
        PlacingRequest((candidate_request(request),), (f"c{n}{at}",), "p", "u", "t", named_holds)
        for n, (request, named_holds) in enumerate(draws)
        for at in range(2)
    ]
    expected = place_in_sequence(used_world, holds, draws)
    forest = forest_of(used_world).make_view(held_amounts=held_by(holds))
    call = PlacingCall(tuple(placing_requests), (), partial=True)
    outcome = ConsumerPlacer(forest, call, {}, Budget()).place_all()
    placements = [outcome.placed.get(request.consumers[0]) for request in placing_requests]
    assert list(map(allocations_of, placements)) == expected, (str(world), holds)
    event("some placed" if any(placements) else "none placed")


def allocations_of(placement):
    return placement and {
        uuid: dict(amounts) for uuid, amounts in placement.allocations.items() if amounts
    }


def place_in_sequence(world, holds, draws):
    """Search and claim for one consumer after the other; return the allocations of each."""
    names = {uuid_of(provider.name): provider.name for provider in world.providers}
    remaining_amounts = {hold: dict(part) for hold, part in holds.items()}
    placements = []
    for request, named_holds in draws:
        for _ in range(2):
            freed_amounts = [
                {place: -n for place, n in remaining_amounts[hold].items()} for hold in named_holds
            ]
            body = json.loads(ask(forest_of(with_used(world, freed_amounts)), request))
            if not body["allocation_requests"]:
                placements.append(None)
                continue
            first = body["allocation_requests"][0]["allocations"]
            placements.append({uuid: part["resources"] for uuid, part in first.items()})
            claimed = Counter()
            for uuid, amounts in placements[-1].items():
                for name, amount in amounts.items():
                    undrawn = amount
                    for hold in named_holds:
                        drawn_amount = min(
                            remaining_amounts[hold].get((names[uuid], name), 0), undrawn
                        )
                        if drawn_amount:
                            remaining_amounts[hold][names[uuid], name] -= drawn_amount
                            undrawn -= drawn_amount
                    claimed[names[uuid], name] += undrawn
            world = with_used(world, [claimed])
    return placements
