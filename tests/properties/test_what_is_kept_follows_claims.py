# SPDX-License-Identifier: Apache-2.0
"""A Forest that was asked before answers after claims as one that knows nothing yet."""

import os
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.forest.building import news
from tests.properties.forest_adapter import (
    ask,
    candidate_request,
    every_path,
    forest_of,
    lowered,
    records_of,
)
from tests.reference.expressions import attributes
from tests.reference.strategies import (
    clouds,
    conditioned,
    consuming_at_times,
    easy_requests,
    few_conditions,
    ordered_requests,
    tolerating,
    worlds,
)
from tests.reference.world import World
from tests.tiers import many_examples
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.model.changes import UsageChange

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "25"))
REQUESTS_EACH = 3
MOST_WRITES = 4
HUGE = 2.0**40
"""A ratio with which amounts do not add up exactly as floating-point numbers."""


@st.composite
def questions(draw):
    if draw(st.booleans()):
        world = draw(clouds())
        kind = easy_requests(world)
    else:
        world = draw(consuming_at_times(worlds()))
        kind = ordered_requests(world)
    asked = [replace(draw(tolerating(kind)), nested=True) for _ in range(REQUESTS_EACH)]
    return draw(conditioned(world)), asked


@st.composite
def written(draw, world):
    """Return the world after amounts, attributes and conditions were written, and the written providers."""
    providers = list(world.providers)
    changed = []
    for _ in range(draw(st.integers(0, MOST_WRITES))):
        number = draw(st.integers(0, len(providers) - 1))
        stock = dict(providers[number].stock)
        if draw(st.integers(0, 3)) == 0:
            providers[number] = replace(
                providers[number], attributes=draw(attributes), conditions=draw(few_conditions)
            )
            changed.append(providers[number].name)
        if not stock:
            continue
        name = draw(st.sampled_from(sorted(stock)))
        used = draw(st.integers(0, stock[name].total + 1))
        ratio = draw(st.sampled_from([stock[name].allocation_ratio] * 3 + [HUGE]))
        stock[name] = replace(stock[name], used=used, allocation_ratio=ratio)
        providers[number] = replace(providers[number], stock=stock)
        changed.append(providers[number].name)
    return World(tuple(providers)), changed


@st.composite
def told(draw, before, after, changed):
    """Return the changes that a reader gets: records, or changes of usage."""
    records, usage = [], {}
    for old, new in zip(before, after, strict=True):
        if new.name not in changed:
            continue
        difference = differences_of_usage(old, new)
        if difference is None or draw(st.booleans()):
            records.append(new)
        else:
            event("told by how much")
            usage[new.id] = UsageChange(difference, 0, 0, 0.0)
    return news(*records, usage=usage)


def differences_of_usage(old, new):
    """By how much usage has risen, by id of the class; None if anything else has changed."""
    pairs = list(zip(old.inventories, new.inventories, strict=True))
    if repr(old.attributes) != repr(new.attributes) or old.links != new.links:
        return None
    if any(replace(was, used=0) != replace(now, used=0) for was, now in pairs):
        return None
    return {now.class_id: now.used - was.used for was, now in pairs}


@pytest.mark.slow
@every_path
def test_orders_and_counts_equal_those_of_a_fresh_forest(sizes):
    @many_examples(WORLDS)
    @given(questions(), st.data())
    def check(question, data):
        world, asked = question
        forest = forest_of(world)
        for _ in range(3):
            compare(forest, forest_of(world), asked, world)
            before = records_of(world)
            world, changed = data.draw(written(world))
            event("written" if changed else "nothing written")
            forest.apply(data.draw(told(before, records_of(world), changed)))

    with lowered(sizes):
        check()


def compare(kept, fresh, asked, world):
    for request in asked:
        where = (str(world), request)
        assert ask(kept, request, 5) == ask(fresh, request, 5), where
        if not is_boundless(world):
            assert counted(kept, request) == counted(fresh, request), where


def is_boundless(world):
    """Return whether so much fits that placing one after the other would take for ever."""
    return any(
        stock.allocation_ratio == HUGE
        for provider in world.providers
        for stock in provider.stock.values()
    )


def counted(forest, request):
    """Return how many consumers fit, in all and by tree."""
    return count_capacity(forest, candidate_request(request), CapacityLimits((), 100), Budget())
