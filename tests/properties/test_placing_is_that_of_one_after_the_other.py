# SPDX-License-Identifier: Apache-2.0
"""A call places as one client would, one consumer after the other (page 98, section 4)."""

import os
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    FoundCandidates,
    ask,
    candidate_request,
    every_path,
    forest_of,
    lowered,
)
from tests.reference.candidates import Reference
from tests.reference.placing import TREES, Call, Placer, Rule, Wanted
from tests.reference.scores import Scores
from tests.reference.strategies import (
    AGGREGATES,
    clouds,
    consuming_at_times,
    device_clouds,
    device_requests,
    easy_requests,
    extended_requests,
    ordered_requests,
    requests,
    requests_of_a_pool,
    seldom,
    worlds,
    worlds_with_a_pool,
)
from tests.reference.world import uuid_of
from tests.tiers import many_examples
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.placer import Placer as Placing
from treeclaim.model.extension import placing as model

WORLDS = int(os.environ.get("TREECLAIM_PROPERTY_EXAMPLES", "30"))
MOST_CANDIDATES = 40
DECIMALS = 12
OLD = "held before"
OTHER = "somebody else"


class TooManyError(Exception):
    """More candidates than the reference wants to look at."""


@st.composite
def rules(draw, count):
    """A rule for a call with so many requests."""
    kind = draw(st.sampled_from(["max_per_domain", "max_per_domain", "max_skew", "same_domain"]))
    value = True if kind == "same_domain" else draw(st.integers(1, 2))
    aggregates = st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True).map(
        tuple
    )
    return Rule(
        domains=draw(st.one_of(st.just(TREES), aggregates)),
        others=draw(seldom(st.just((OTHER,)), ())),
        requests=draw(
            seldom(st.frozensets(st.integers(0, count - 1), min_size=1), frozenset(range(count)))
        ),
        soft=kind != "same_domain" and draw(st.integers(0, 2)) == 0,
        **{kind: value},
    )


@st.composite
def calls(draw, world, kinds=None):
    """A call, and what some of its consumers hold already."""
    if kinds is None:
        kinds = st.one_of(
            easy_requests(world),
            ordered_requests(world),
            requests(world),
            extended_requests(world),
        ).map(lambda request: replace(request, nested=True))
    count = draw(st.integers(1, 2))
    requests_of_call = []
    for number in range(count):
        names = tuple(f"c{number}{at}" for at in range(draw(st.integers(1, 4))))
        requests_of_call.append(
            Wanted(tuple(draw(st.lists(kinds, min_size=1, max_size=2))), names)
        )
    made = draw(st.lists(rules(count), max_size=3))
    affine = [rule for rule in made if rule.same_domain][:1]
    holds = st.lists(
        st.tuples(
            st.sampled_from([provider.name for provider in world.providers]),
            st.just("VCPU"),
            st.just(1),
        ),
        min_size=1,
        max_size=2,
        unique=True,
    ).map(frozenset)
    holders = draw(seldom(st.fixed_dictionaries({"c00": holds, OTHER: holds}), {}))
    return Call(
        requests=tuple(requests_of_call),
        rules=tuple([rule for rule in made if not rule.same_domain] + affine),
        partial=not affine and draw(st.booleans()),
        holders=holders,
    )


@st.composite
def questions(draw):
    kind = draw(st.integers(0, 4))
    if kind == 0:
        world = draw(worlds_with_a_pool())
        return world, draw(calls(world, requests_of_a_pool()))
    if kind == 1:
        world = draw(device_clouds())
        return world, draw(calls(world, device_requests(world)))
    world = draw(consuming_at_times(st.one_of(worlds(), clouds())))
    return world, draw(calls(world))


some_worlds = many_examples(WORLDS)


@pytest.mark.slow
@every_path
def test_batch_placement_equals_sequential_placements(sizes):
    @some_worlds
    @given(questions())
    def check(question):
        compare(*question)

    with lowered(sizes):
        check()


def ordered(world, request):
    """The candidates of a query in its order, as the definitions have it."""
    usual = FoundCandidates(
        world, ask(forest_of(world), replace(request, order=(), preferred=()))
    ).listed
    if len(usual) > MOST_CANDIDATES:
        raise TooManyError
    if not request.order:
        return usual
    scores = Scores(Reference(world), request)
    exact = [scores.score(candidate) for candidate in usual]
    if any(abs(score * 10**DECIMALS % 1 - 0.5) < 1e-3 for score in exact):
        raise TooManyError
    ranked = sorted(range(len(usual)), key=lambda at: (-round(exact[at], DECIMALS), at))
    return [usual[at] for at in ranked]


def compare(world, call):
    known = {}

    def once(world, request):
        key = (str(world), id(request))
        if key not in known:
            known[key] = ordered(world, request)
        return known[key]

    try:
        expected = Placer(world, call, once).place()
    except TooManyError:
        return
    event("all placed" if not expected.unplaced else f"{bool(expected.placed)} some not")
    _, attempt = placed(world, call)
    where = (str(world), call)
    assert attempt.unplaced == expected.unplaced, where
    names = {provider.uuid: provider.name for provider in world.providers}
    for consumer, placement in expected.placed.items():
        mine = attempt.placed[consumer]
        if placement is None:
            assert mine.mappings is None
            continue
        at, (alloc, mapping), dropped = placement
        assert (mine.alternative, list(mine.dropped)) == (at, dropped), where
        assert {
            (names[p], c, n)
            for p, resources in mine.allocations.items()
            for c, n in resources.items()
        } == alloc, where
        assert {
            (suffix, frozenset(names[p] for p in resources))
            for suffix, resources in mine.mappings.items()
        } == mapping, where
    assert attempt.placed.keys() == expected.placed.keys()


def placed(world, call, *, explain=False):
    """Return a placer of a call in the Forest, and the outcome."""
    made = {}

    def request_of(request):
        return made.setdefault(id(request), candidate_request(request))

    placing_call = model.Placing(
        requests=tuple(
            model.PlacingRequest(
                tuple(map(request_of, request.alternatives)), request.consumers, "p", "u", "t"
            )
            for request in call.requests
        ),
        rules=tuple(
            model.Rule(
                None if rule.domains == TREES else tuple(map(uuid_of, rule.domains)),
                rule.max_per_domain,
                rule.max_skew,
                rule.same_domain,
                rule.others,
                rule.requests,
                rule.soft,
            )
            for rule in call.rules
        ),
        partial=call.partial,
        explain=explain,
    )
    holders = {}
    for consumer, alloc in call.holders.items():
        amounts = {}
        for p, c, n in alloc:
            amounts.setdefault(uuid_of(p), {})[c] = n
        holders[consumer] = model.Holder(0, amounts, 1)
    placer = Placing(forest_of(world), placing_call, holders, Budget())
    return placer, placer.place_all()
