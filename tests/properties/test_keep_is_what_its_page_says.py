# SPDX-License-Identifier: Apache-2.0
"""`keep:MIX:CLASS` and stranded amounts follow contract page 101, section 3."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.properties.forest_adapter import (
    FoundCandidates,
    candidate_request,
    forest_of,
    list_unordered,
    named_candidate,
    property_of,
    rank,
)
from tests.reference import keeping
from tests.reference.candidates import TooManyError
from tests.reference.placing import take_candidate
from tests.reference.strategies import (
    CLASSES,
    easy_device_requests,
    nested,
    requests,
    worlds_with_requests,
)
from tests.reference.world import uuid_of
from tests.tiers import many_worlds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.mixes.mix_room import compute_stranded
from treeclaim.forest.placing.queries import Query
from treeclaim.forest.placing.scratch import ScratchForest
from treeclaim.forest.search import search
from treeclaim.model.extension.planning import Mix, MixRequest
from treeclaim.model.request import SearchOptions

WORLDS = 25
MOST_CANDIDATES = 40


@st.composite
def questions(draw):
    """Draw a world, a mix for it, and requests ordered by the mix."""
    world, kinds = draw(worlds_with_requests())
    plain = kinds.map(lambda request: replace(request, nested=True, order=(), preferred=()))
    mix = keeping.Mix(
        tuple((draw(plain), draw(st.integers(1, 5))) for _ in range(draw(st.integers(1, 3))))
    )
    classes = sorted(
        {c for request, _ in mix.requests for g in request.groups for c in g.resources}
    )
    if not classes:
        classes = list(CLASSES)
    request = draw(kinds)
    term = ("keep", ("m", draw(st.sampled_from(classes))), draw(st.sampled_from([1, 3])))
    terms = request.order if draw(st.integers(0, 2)) == 0 else ()
    if not terms:
        request = replace(request, preferred=())
    return world, mix, replace(request, nested=True, order=(term, *terms))


def model_mix(mix):
    """The mix as the Forest takes it."""
    mix_requests = {
        f"r{number}": MixRequest(candidate_request(request), weight)
        for number, (request, weight) in enumerate(mix.requests)
    }
    return Mix("m", mix_requests)


def request_for(original, mix, limit=None):
    request = candidate_request(original, limit)
    if request.order is None:
        return request
    return replace(request, order=replace(request.order, mixes=(model_mix(mix),)))


def search_for(world, request, mix, limit=None):
    """Return the candidates of a request that is ordered by a mix."""
    answer = search(forest_of(world), request_for(request, mix, limit), SearchOptions())
    return FoundCandidates(world, b"".join(answer.pieces()))


@pytest.mark.slow
@property_of(WORLDS, questions())
def test_candidates_are_ordered_by_their_cost_to_a_mix(question):
    world, mix, request = question
    scores = keeping.KeepScores(world, request, {"m": mix})
    try:
        expected = rank(list_unordered(world, request, MOST_CANDIDATES), scores.score)
    except TooManyError:
        event("too many")
        return
    event("several scores" if len({score for score, _ in expected}) > 1 else "one score")
    for limit in (None, 1, 2, len(expected) // 2 or 1):
        result = search_for(world, request, mix, limit)
        where = (str(world), mix, request, limit)
        assert result.scores == [float(score) for score, _ in expected[:limit]], where
        assert result.listed == [candidate for _, candidate in expected[:limit]], where


@many_worlds(WORLDS)
@given(questions(), st.data())
def test_stranded_amounts_match_the_reference(question, data):
    world, mix, request = question
    scores = keeping.KeepScores(world, request, {"m": mix})
    names = [provider.name for provider in world.providers]
    name_sets = data.draw(st.lists(st.sets(st.sampled_from(names)), max_size=3))
    groups = [set(names), *name_sets]
    forest = forest_of(world)
    members = [
        (at, forest.row_of(uuid_of(name)))
        for at, group_names in enumerate(groups)
        for name in group_names
    ]
    group, rows = np.array(members, dtype=np.int64).reshape(-1, 2).T
    result = compute_stranded(forest, model_mix(mix), group, rows, count=len(groups))
    try:
        expected = {
            name: [scores.stranded("m", name, among) for among in groups] for name in result
        }
    except TooManyError:
        return
    event("some" if any(map(any, expected.values())) else "none")
    assert result == expected, (str(world), mix, groups)


@st.composite
def calls(draw):
    """A world, a mix, and requests in the order in which they come; the same ones come again."""
    world, mix, request = draw(questions())
    kinds = st.one_of(easy_device_requests(), requests(world).map(nested))
    terms = ((), request.order, request.order[:1], (*request.order[:1], ("spread", (), 2)))
    more_requests = [
        replace(draw(kinds), order=draw(st.sampled_from(terms[:1] + terms[2:])), preferred=())
        for _ in range(2)
    ]
    return world, mix, draw(st.lists(st.sampled_from([request, *more_requests]), max_size=6))


@pytest.mark.slow
@property_of(WORLDS, calls())
def test_sequential_placements_see_earlier_ones_as_written(call):
    world, mix, requests = call
    scratch = ScratchForest(forest_of(world))
    queries = {}
    everywhere = np.ones(len(scratch.forest.order.roots), dtype=np.bool_)
    for number, reference_request in enumerate(requests):
        request = request_for(reference_request, mix)
        key = str(request)
        if key not in queries:
            queries[key] = Query(scratch, request, Budget())
        candidate = queries[key].find_first(everywhere, lambda _: True)
        expected = search_for(world, reference_request, mix, 1).listed
        where = (str(world), mix, requests[: number + 1])
        if candidate is None:
            assert expected == [], where
            continue
        body = candidate.body(scratch.forest)
        assert [named_candidate(world, body.allocations, body.mappings)] == expected, where
        event(f"placed by {type(queries[key]).__name__}")
        scratch.take(candidate.allocations)
        world = take_candidate(world, expected[0][0])
