# SPDX-License-Identifier: Apache-2.0
"""Capacity is what placing one after the other comes to (page 98, section 5)."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import candidate_request, forest_of
from tests.properties.test_placing_is_that_of_one_after_the_other import ordered
from tests.reference.candidates import SHARING, Reference, TooManyError
from tests.reference.keeping import emptied
from tests.reference.placing import take_candidate
from tests.reference.strategies import AGGREGATES, worlds_with_requests
from tests.reference.world import uuid_of
from tests.tiers import many_worlds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity

MOST = 30


@st.composite
def questions(draw):
    world, kinds = draw(worlds_with_requests())
    return world, draw(kinds)


@pytest.mark.slow
@many_worlds(40)
@given(questions(), st.sampled_from([None, "tree", AGGREGATES]))
def test_capacity_equals_sequential_placements(question, domains):
    world, request = question
    for kind in compare(world, request, domains):
        event(kind)


def compare(world, request, domains):
    """Compare with the reference; yield what kind of comparison it was."""
    try:
        expected = count(world, request)
        empty = count(emptied(world), request)
        parts = {} if domains is None else parts_of(world, request, domains)
    except TooManyError:
        return
    yield "some fit" if expected else "none fits"
    limits = CapacityLimits(
        None if domains is None else () if domains == "tree" else tuple(map(uuid_of, domains)),
        100,
    )
    result = count_capacity(forest_of(world), candidate_request(request), limits, Budget())
    where = (str(world), request)
    assert (result["fits"], result["when_empty"]) == (expected, empty), where
    assert result["complete"]
    assert result["at_most"] >= expected, where
    if is_exact(world, request):
        yield "exact"
        assert result["at_most"] == expected, where
    assert {domain["uuid"]: domain["fits"] for domain in result.get("domains", [])} == {
        uuid_of(domain): fits for domain, fits in parts.items() if fits
    }, where


def count(world, request, keeps=lambda trees: True):
    """Return how many consumers can be placed until nothing fits."""
    fits = 0
    while True:
        result = next(
            (alloc for alloc, _ in ordered(world, request) if keeps(trees_of(world, alloc))), None
        )
        if result is None:
            return fits
        world = take_candidate(world, result)
        fits += 1
        if fits > MOST:
            raise TooManyError


def parts_of(world, request, domains):
    """Return how many consumers fit in each domain alone."""
    reference = Reference(world)
    if domains == "tree":
        return {
            root: count(world, request, lambda trees, root=root: root in trees)
            for root in reference.roots
        }
    return {
        domain: count(
            world,
            request,
            lambda trees, domain=domain: any(domain in reference.aggs(tree) for tree in trees),
        )
        for domain in domains
    }


def trees_of(world, alloc):
    return Reference(world).trees({p for p, _, _ in alloc})


def is_exact(world, request):
    """Return whether the page promises the bound: one slot, or one option for each."""
    if request.can_split or any(
        SHARING in provider.traits or provider.conditions for provider in world.providers
    ):
        return False
    (group, *other_groups) = request.groups
    if not other_groups and (group.suffix or len(group.resources) == 1):
        return True
    return all(most <= 1 for most in options(emptied(world), request))


def options(world, request):
    """Return the number of possible providers for each slot in each tree."""
    reference = Reference(world)
    for group in request.groups:
        for root in reference.roots:
            if group.suffix:
                yield len(reference.suffixed(group, root))
                continue
            for name, amount in group.resources.items():
                yield sum(
                    reference.may_use(p, name, root, group) and reference.fit(p, name, amount)
                    for p in reference.P
                )
