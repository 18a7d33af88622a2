# SPDX-License-Identifier: Apache-2.0
"""A call for all, separate calls, a kept series, searches with claims, and counting give the same places.

The worlds are hosts with NUMA nodes that are partly used, the requests have several groups: where
the order of candidates moved with what is free, these came to different places and numbers."""

import os
from time import thread_time

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import Found, ask, candidate_request, forest_of
from tests.reference.placing import taken
from tests.reference.strategies import AGGREGATES, TRAITS
from tests.reference.world import Group, Provider, Request, Stock, World, uuid_of
from tests.tiers import many_examples
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.placing.placer import Placer
from treeclaim.forest.placing.series import MOST_BYTES, Series
from treeclaim.model.extension.placing import Placing, PlacingRequest

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "25")) * 4
MOST = 40
LONG = 3_600.0


@st.composite
def hosts(draw):
    """Hosts with NUMA nodes of different sizes, some of them used, perhaps beside a pool."""
    providers = []

    def stock(most):
        total = draw(st.integers(2, most))
        return Stock(total=total, used=draw(st.sampled_from([0, 0, 0, 1, 2])))

    for number in range(draw(st.integers(1, 3))):
        racks = frozenset(draw(st.sets(st.sampled_from(AGGREGATES), max_size=1)))
        host = f"h{number}"
        providers.append(Provider(host, None, {"DISK_GB": stock(8)}, aggregates=racks))
        for node in range(draw(st.integers(1, 2)) + 1):
            traits = frozenset(draw(st.sets(st.sampled_from(TRAITS[:2]), max_size=1)))
            names = {"VCPU": stock(6), "MEMORY_MB": stock(8)}
            providers.append(Provider(f"{host}n{node}", host, names, traits))
    return World(tuple(providers))


@st.composite
def servers(draw):
    """A request of two or three groups, each of one NUMA node."""
    groups = []
    for suffix in ("_A", "_B", "_C")[: draw(st.integers(2, 3))]:
        names = draw(
            st.sampled_from([("VCPU",), ("VCPU", "MEMORY_MB"), ("MEMORY_MB",), ("VCPU",)])
        )
        resources = {name: draw(st.integers(1, 4)) for name in names}
        wants = draw(st.sampled_from([(), (), (), (frozenset(TRAITS[:1]),)]))
        groups.append(Group(suffix, resources, required=wants))
    suffixes = frozenset(group.suffix for group in groups)
    if draw(st.booleans()):
        groups.insert(0, Group("", {"DISK_GB": draw(st.integers(1, 2))}))
    # A term may name what is asked for alone.
    asked = max({name for group in groups for name in group.resources})
    order = draw(
        st.sampled_from([(), (), (), (), (("spread", (), 1),), (("pack_providers", (asked,), 1),)])
    )
    return Request(
        tuple(groups), isolated=draw(st.sampled_from([suffixes, frozenset()])), order=order
    )


@pytest.mark.slow
@many_examples(WORLDS)
@given(hosts(), servers())
def test_all_ways_of_placing_and_counting_agree(world, request):
    wanted = candidate_request(request)
    searched = list(by_searches(world, request))
    event("some fit" if searched else "none fits")
    assert by_one_call(world, wanted) == searched
    assert list(by_separate_calls(world, wanted)) == searched
    assert list(by_a_series(world, wanted)) == searched
    result = count_capacity(forest_of(world), wanted, CapacityLimits((), 100), Budget())
    assert result["complete"]
    assert result["fits"] == len(searched)
    # Each host is counted by itself; searched by itself it gives as many.
    alone = {host: len(list(by_searches(only(world, host), request))) for host in roots(world)}
    assert {domain["name"]: domain["fits"] for domain in result["domains"]} == {
        host: count for host, count in alone.items() if count
    }


def by_searches(world, request):
    """Return the places of a client that claims the first candidate until there is none."""
    while listed := Found(world, ask(forest_of(world), request, limit=1)).listed:
        yield listed[0][0]
        world = taken(world, listed[0][0])


def by_one_call(world, request):
    """Return the places of one call for more consumers than fit."""
    names = tuple(f"c{number}" for number in range(MOST))
    call = Placing((PlacingRequest((request,), names, "p", "u", "t"),), (), partial=True)
    placed = Placer(forest_of(world), call, {}, Budget()).placed().placed
    return [in_names(world, placed[name]) for name in names if name in placed]


def by_separate_calls(world, request):
    """Return the places of calls for single consumers, each after the previous one was written."""
    call = Placing((PlacingRequest((request,), ("c",), "p", "u", "t"),), (), partial=True)
    while placed := Placer(forest_of(world), call, {}, Budget()).placed().placed:
        result = in_names(world, placed["c"])
        yield result
        world = taken(world, result)


def by_a_series(world, request):
    """Return the places of calls whose consumers wait at the same time."""
    series = Series(forest_of(world), MOST_BYTES)
    wanted = PlacingRequest((request,), ("c",), "p", "u", "t")
    while result := series.place(wanted, thread_time() + LONG):
        yield in_names(world, result)


def in_names(world, placement):
    """Return the amounts of a placement, by names of providers."""
    names = {uuid_of(provider.name): provider.name for provider in world.providers}
    return frozenset(
        (names[provider], name, amount)
        for provider, some in placement.allocations.items()
        for name, amount in some.items()
    )


def roots(world):
    return [provider.name for provider in world.providers if provider.parent is None]


def only(world, host):
    """The world without the other hosts."""
    return World(
        tuple(provider for provider in world.providers if host in (provider.name, provider.parent))
    )
