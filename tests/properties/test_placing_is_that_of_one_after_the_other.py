# SPDX-License-Identifier: Apache-2.0
"""A call places as one client would, one consumer after the other (page 98, section 4)."""

import pytest
from hypothesis import event
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    by_provider,
    candidate_request,
    forest_of,
    list_unordered,
    named_candidate,
    property_of,
    rank,
)
from tests.reference.candidates import Reference, TooManyError
from tests.reference.placing import TREES, Call, ConsumerGroup, Placer, Rule
from tests.reference.scores import Scores
from tests.reference.strategies import AGGREGATES, seldom, worlds_with_requests
from tests.reference.world import uuid_of
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.placer import ConsumerPlacer
from treeclaim.model.extension import placing as model

MOST_CANDIDATES = 40
OTHER = "somebody else"


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
        other_consumers=draw(seldom(st.just((OTHER,)), ())),
        requests=draw(
            seldom(st.frozensets(st.integers(0, count - 1), min_size=1), frozenset(range(count)))
        ),
        soft=kind != "same_domain" and draw(st.integers(0, 2)) == 0,
        **{kind: value},
    )


@st.composite
def questions(draw):
    """Draw a world and a call, some of whose consumers already have allocations."""
    world, kinds = draw(worlds_with_requests())
    count = draw(st.integers(1, 2))
    requests_of_call = []
    for number in range(count):
        names = tuple(f"c{number}{at}" for at in range(draw(st.integers(1, 4))))
        requests_of_call.append(
            ConsumerGroup(tuple(draw(st.lists(kinds, min_size=1, max_size=2))), names)
        )
    drawn_rules = draw(st.lists(rules(count), max_size=3))
    affine = [rule for rule in drawn_rules if rule.same_domain][:1]
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
    return world, Call(
        requests=tuple(requests_of_call),
        rules=tuple([rule for rule in drawn_rules if not rule.same_domain] + affine),
        partial=not affine and draw(st.booleans()),
        holders=holders,
    )


def ordered(world, request):
    """The candidates of a query in its order, as the definitions have it."""
    candidates = list_unordered(world, request, MOST_CANDIDATES)
    if not request.order:
        return candidates
    scores = Scores(Reference(world), request)
    return [candidate for _, candidate in rank(candidates, scores.score)]


@pytest.mark.slow
@property_of(30, questions())
def test_batch_placement_equals_sequential_placements(question):
    world, call = question
    candidates_by_key = {}

    def once(world, request):
        key = (str(world), id(request))
        if key not in candidates_by_key:
            candidates_by_key[key] = ordered(world, request)
        return candidates_by_key[key]

    try:
        expected = Placer(world, call, once).place()
    except TooManyError:
        return
    event("all placed" if not expected.unplaced else f"{bool(expected.placed)} some not")
    _, attempt = placed(world, call)
    where = (str(world), call)
    assert attempt.unplaced == expected.unplaced, where
    for consumer, placement in expected.placed.items():
        mine = attempt.placed[consumer]
        if placement is None:
            assert mine.mappings is None
            continue
        at, candidate, dropped = placement
        assert (mine.alternative, list(mine.dropped)) == (at, dropped), where
        assert named_candidate(world, mine.allocations, mine.mappings) == candidate, where
    assert attempt.placed.keys() == expected.placed.keys()


def placed(world, call, *, explain=False):
    """Return a placer of a call in the Forest, and the outcome."""
    requests_by_id = {}

    def request_of(request):
        return requests_by_id.setdefault(id(request), candidate_request(request))

    placing_call = model.PlacingCall(
        requests=tuple(
            model.PlacingRequest(
                tuple(map(request_of, request.alternatives)), request.consumers, "p", "u", "t"
            )
            for request in call.requests
        ),
        rules=tuple(
            model.PlacingRule(
                None if rule.domains == TREES else tuple(map(uuid_of, rule.domains)),
                rule.max_per_domain,
                rule.max_skew,
                rule.same_domain,
                rule.other_consumers,
                rule.requests,
                rule.soft,
            )
            for rule in call.rules
        ),
        partial=call.partial,
        explain=explain,
    )
    holders = {
        consumer: model.PlacedConsumer(0, by_provider({(p, c): n for p, c, n in alloc}), 1)
        for consumer, alloc in call.holders.items()
    }
    placer = ConsumerPlacer(forest_of(world), placing_call, holders, Budget())
    return placer, placer.place_all()
