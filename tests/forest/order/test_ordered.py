# SPDX-License-Identifier: Apache-2.0
"""Candidates come by descending score, whichever trees are looked at together."""

import json

import pytest

from tests.forest.building import complete, provider_uuid, record
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.search import search
from treeclaim.forest.table.forest import Forest
from treeclaim.model.extension.order import Order, Term, TermName
from treeclaim.model.request import BodyForm, CandidateRequest, RequestGroup, SearchOptions

WANTED = RequestGroup("", {"VCPU": 1})


@pytest.fixture
def forest():
    """Three trees: one has the fullest and the emptiest child, the others have those between."""
    made = Forest()
    used = {10: {11: 8, 12: 0}, 20: {21: 6}, 30: {31: 4, 32: 2}}
    made.apply(
        complete(
            [
                made_of
                for root, children in used.items()
                for made_of in (
                    record(root),
                    *(
                        record(child, parent=root, root=root, inventories={"VCPU": (10, taken)})
                        for child, taken in children.items()
                    ),
                )
            ]
        )
    )
    return made


def found(forest, term, limit=None):
    """The providers of the candidates in order, and their scores."""
    request = CandidateRequest((WANTED,), limit=limit, order=Order((Term(term, ()),), ()))
    document = json.loads(b"".join(search(forest, request, SearchOptions(), BodyForm()).pieces()))
    given = [
        next(iter(allocation_request["allocations"]))
        for allocation_request in document["allocation_requests"]
    ]
    numbers = {provider_uuid(number): number for number in (11, 12, 21, 31, 32)}
    return [numbers[uuid] for uuid in given], document["scores"]


@pytest.mark.parametrize("trees", [1, 2, 16])
@pytest.mark.parametrize("limit", [None, 3])
def test_candidates_of_one_tree_are_ordered_individually(forest, monkeypatch, trees, limit):
    monkeypatch.setattr(thresholds, "FIRST_BEST_TREES", trees)
    packed = ([11, 21, 31, 32, 12], [0.9, 0.7, 0.5, 0.3, 0.1])
    expected = tuple(part[:limit] for part in packed)
    assert found(forest, TermName.PACK_PROVIDERS, limit) == expected


@pytest.mark.parametrize("trees", [1, 2, 16])
def test_opposite_term_reverses_the_order(forest, monkeypatch, trees):
    monkeypatch.setattr(thresholds, "FIRST_BEST_TREES", trees)
    expected = ([12, 32, 31, 21, 11], [0.9, 0.7, 0.5, 0.3, 0.1])
    assert found(forest, TermName.SPREAD_PROVIDERS) == expected
