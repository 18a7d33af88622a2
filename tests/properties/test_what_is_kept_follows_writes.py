# SPDX-License-Identifier: Apache-2.0
"""A Forest that answered before returns, after any writes, the bytes that a new Forest returns."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event
from hypothesis import strategies as st

from tests.forest.building import make_changes
from tests.properties.forest_adapter import (
    ask,
    candidate_request,
    forest_of,
    property_of,
    records_of,
)
from tests.reference.candidates import SHARING
from tests.reference.expressions import attributes
from tests.reference.strategies import (
    AGGREGATES,
    CLASSES,
    TRAITS,
    clouds,
    conditioned,
    consuming_at_times,
    easy_requests,
    few_conditions,
    ordered_requests,
    stocks,
    tolerating,
    worlds,
)
from tests.reference.world import Provider, World
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.listing.selection import select_page
from treeclaim.forest.listing.texts import INCLUDABLE, ListingTexts
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.model.changes import UsageChange

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
    requests = [replace(draw(tolerating(kind)), nested=True) for _ in range(REQUESTS_EACH)]
    return draw(conditioned(world)), requests


@st.composite
def worlds_after_writes(draw, world):
    """Return the world after a few writes, at most two of which change trees."""
    providers = list(world.providers)
    for _ in range(draw(st.integers(0, MOST_WRITES))):
        number = draw(st.integers(0, len(providers) - 1))
        stock = dict(providers[number].stock)
        if draw(st.integers(0, 3)) == 0:
            providers[number] = replace(
                providers[number], attributes=draw(attributes), conditions=draw(few_conditions)
            )
        if not stock:
            continue
        name = draw(st.sampled_from(sorted(stock)))
        used = draw(st.integers(0, stock[name].total + 1))
        ratio = draw(st.sampled_from([stock[name].allocation_ratio] * 3 + [HUGE]))
        stock[name] = replace(stock[name], used=used, allocation_ratio=ratio)
        providers[number] = replace(providers[number], stock=stock)
    for change in draw(
        st.lists(
            st.sampled_from((relabel, relabel, move, create, create, delete, succeed)), max_size=2
        )
    ):
        change(draw, providers)
    return World(tuple(providers))


def relabel(draw, providers):
    """Replace traits and aggregates of a provider; it may begin or cease to share."""
    number = draw(st.integers(0, len(providers) - 1))
    traits = draw(st.frozensets(st.sampled_from((*TRAITS, SHARING)), max_size=2))
    aggregates = draw(st.frozensets(st.sampled_from(AGGREGATES), max_size=2))
    providers[number] = replace(providers[number], traits=traits, aggregates=aggregates)


def move(draw, providers):
    """Move a subtree below another provider, or make it a tree of its own."""
    if any(provider.consumes for provider in providers):
        return
    number = draw(st.integers(0, len(providers) - 1))
    subtree = {providers[number].name}
    for _ in providers:
        subtree |= {provider.name for provider in providers if provider.parent in subtree}
    possible_parents = [provider.name for provider in providers if provider.name not in subtree]
    parent = draw(st.sampled_from([None, *possible_parents]))
    providers[number] = replace(providers[number], parent=parent)


def create(draw, providers):
    """Add a provider with an id between existing ids, possibly the id of a deleted provider."""
    names = [provider.name for provider in providers]
    name = draw(st.sampled_from([f"new{number}" for number in range(5)]))
    if {name, f"{name}x"} & set(names):
        return
    parent = draw(st.sampled_from([None, *names]))
    stock = draw(st.dictionaries(st.sampled_from(CLASSES), stocks(), max_size=3))
    providers.append(Provider(name, parent, stock))


def delete(_draw, providers):
    """Delete the last provider, if nothing is below it and nothing consumes its inventories."""
    last = providers[-1].name
    consumed = {
        key[0] for provider in providers for keys in provider.consumes.values() for key in keys
    }
    if len(providers) > 1 and last not in consumed | {provider.parent for provider in providers}:
        providers.pop()


def succeed(draw, providers):
    """Delete the last provider; if it is a later one, another provider gets its id, as in some databases."""
    former, count = providers[-1], len(providers)
    delete(draw, providers)
    if former.name.startswith("new") and len(providers) < count:
        name = former.name.strip("x") if former.name.endswith("x") else f"{former.name}x"
        providers.append(replace(former, name=name))


@st.composite
def told_changes(draw, before, after):
    """Return the changes that a reader gets: records, or changes of usage."""
    former = {record.id: record for record in before}
    records, usage = [], {}
    for new_record in after:
        old_record = former.pop(new_record.id, None)
        if repr(old_record) == repr(new_record):
            continue
        difference = None if old_record is None else differences_of_usage(old_record, new_record)
        if difference is None or draw(st.booleans()):
            records.append(new_record)
        else:
            event("told by how much")
            usage[new_record.id] = UsageChange(difference, 0, 0, 0.0)
    return make_changes(*records, removed=former, usage=usage)


def differences_of_usage(old_record, new_record):
    """By how much usage has risen, by id of the class; None if anything else has changed."""
    if repr(replace(old_record, inventories=())) != repr(replace(new_record, inventories=())):
        return None
    pairs = list(zip(old_record.inventories, new_record.inventories, strict=True))
    if any(replace(was, used=0) != replace(now, used=0) for was, now in pairs):
        return None
    return {now.class_id: now.used - was.used for was, now in pairs}


@pytest.mark.slow
@property_of(25, questions(), st.data())
def test_everything_seen_equals_a_fresh_forest(question, data):
    world, requests = question
    forest, texts = forest_of(world), ListingTexts()
    for _ in range(4):
        compare(forest, forest_of(world), requests, world)
        compare_lists(forest, forest_of(world), texts)
        before = records_of(world)
        world = data.draw(worlds_after_writes(world))
        forest.apply(data.draw(told_changes(before, records_of(world))))
        for _ in range(data.draw(st.integers(0, 3))):
            forest.run_compaction_step()


def compare(kept_forest, fresh_forest, requests, world):
    for request in requests:
        where = (str(world), request)
        assert ask(kept_forest, request, 5) == ask(fresh_forest, request, 5), where
        if not is_boundless(world):
            assert counted(kept_forest, request) == counted(fresh_forest, request), where


def compare_lists(kept_forest, fresh_forest, texts):
    """Compare lists of providers; `texts` were cached for the kept Forest."""
    assert repr(kept_forest.records()) == repr(fresh_forest.records())
    assert kept_forest.associated_traits() == fresh_forest.associated_traits()
    ids = sorted(record.id for record in fresh_forest.records())
    page = select_page(kept_forest, kept_forest.living_rows, ids[0], 5).rows
    assert kept_forest.id.values[page].tolist() == ids[1:6]
    for record in fresh_forest.records():
        row = kept_forest.row_of(record.uuid)
        assert row == kept_forest.row_of_name(record.name)
        anew = ListingTexts().joined(
            fresh_forest, np.array([fresh_forest.row_of(record.uuid)]), INCLUDABLE
        )
        assert texts.joined(kept_forest, np.array([row]), INCLUDABLE) == anew


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
