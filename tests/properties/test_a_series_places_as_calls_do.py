# SPDX-License-Identifier: Apache-2.0
"""A kept series places consumers as a new call without cached state does."""

from collections import Counter
from dataclasses import replace
from time import thread_time

import pytest
from hypothesis import event
from hypothesis import strategies as st

from tests.forest.building import make_changes
from tests.properties.forest_adapter import (
    candidate_request,
    forest_of,
    property_of,
    records_of,
)
from tests.properties.test_what_is_kept_follows_writes import (
    differences_of_usage,
    told_changes,
    worlds_after_writes,
)
from tests.reference.strategies import clouds, consuming_at_times, easy_requests, ordered_requests
from tests.reference.world import Group, Request, uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.forest.placing.series import MOST_BYTES, PlacementSeries
from treeclaim.model.changes import UsageChange
from treeclaim.model.extension.placing import PlacingCall, PlacingRequest

ROUNDS = 5
LONG = 3_600.0


@st.composite
def questions(draw):
    """A world where much fits, and some requests."""
    world = draw(consuming_at_times(clouds()))
    plain = st.sampled_from(["VCPU", "FPGA", "MEMORY_MB"]).map(
        lambda name: Request((Group("_A", {name: 1}),), order=(("spread", (), 1),))
    )
    kinds = st.one_of(plain, easy_requests(world), ordered_requests(world))
    requests = draw(st.lists(kinds, min_size=1, max_size=3))
    return world, [candidate_request(replace(request, nested=True)) for request in requests]


@pytest.mark.slow
@property_of(25, questions(), st.data())
def test_reused_series_places_like_a_call_in_a_fresh_forest(question, data):
    world, requests = question
    forest = forest_of(world)
    series = PlacementSeries(forest, MOST_BYTES)
    for _ in range(ROUNDS):
        consumers = data.draw(st.lists(st.sampled_from(requests), max_size=4))
        placing_requests = [
            PlacingRequest((request,), (f"c{number}",), "p", "u", "t")
            for number, request in enumerate(consumers)
        ]
        if series.may_follow(forest):
            event("followed")
        else:
            event("made anew")
            series = PlacementSeries(forest, MOST_BYTES)
        placements = [series.place(each, thread_time() + LONG) for each in placing_requests]
        assert placements == placed(world, placing_requests), (str(world), consumers)
        event("some placed" if any(placements) else "none placed")
        used = claimed(data, filter(None, placements))
        used.update(released(data, world))
        world = change_usage(forest, world, used)
        if data.draw(st.integers(0, 4)) == 0:
            before = records_of(world)
            world = data.draw(worlds_after_writes(world))
            forest.apply(data.draw(told_changes(before, records_of(world))))


def placed(world, placing_requests):
    """Return where one call places the same consumers; None for those without a place."""
    call = PlacingCall(tuple(placing_requests), (), partial=True)
    outcome = ConsumerPlacer(forest_of(world), call, {}, Budget()).place_all()
    return [
        outcome.placed.get(placing_request.consumers[0]) for placing_request in placing_requests
    ]


def claimed(data, placements):
    """Return the used amounts of the placements that are written."""
    used = Counter()
    for placement in placements:
        if data.draw(st.integers(0, 3)):
            event("written")
            for provider, amounts in placement.allocations.items():
                for name, amount in amounts.items():
                    used[provider, name] += amount
    return used


def released(data, world):
    """Draw amounts that other clients claim, or release, meanwhile; released amounts are negative."""
    used = Counter()
    stocks = [
        (uuid_of(provider.name), name, stock)
        for provider in world.providers
        for name, stock in sorted(provider.stock.items())
    ]
    for _ in range(data.draw(st.integers(0, 2)) if stocks else 0):
        provider, name, stock = data.draw(st.sampled_from(stocks))
        used[provider, name] = data.draw(st.integers(0, max(stock.total, stock.used))) - stock.used
    return used


def change_usage(forest, world, changes):
    """Change used amounts in a Forest and a world; return the world."""
    after = world.using(lambda p, c, used: max(used + changes[uuid_of(p), c], 0))
    usage = {}
    for old_record, new_record in zip(records_of(world), records_of(after), strict=True):
        differences = differences_of_usage(old_record, new_record)
        if any(differences.values()):
            usage[new_record.id] = UsageChange(differences, 0, 0, 0.0)
    forest.apply(make_changes(usage=usage))
    return after
