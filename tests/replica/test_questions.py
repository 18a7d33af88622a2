# SPDX-License-Identifier: Apache-2.0
"""Questions that go to a child at once."""

import pytest

from treeclaim.forest.explain.explain import Focus
from treeclaim.forest.placing.capacity import CapacityLimits
from treeclaim.model.extension.placing import Placing, PlacingRequest
from treeclaim.model.request import BodyForm, CandidateRequest, RequestGroup, SearchOptions
from treeclaim.replica.questions import (
    alternatives_question,
    candidate_question,
    capacity_question,
    explain_question,
    placing_question,
)

MANY = 33
"""Groups that are too many to be tried there."""

EASY = CandidateRequest((RequestGroup("", {"VCPU": 1}),))


def groups(count):
    """A request with so many groups."""
    return CandidateRequest(
        tuple(RequestGroup(f"_{number}", {"VCPU": 1}) for number in range(count))
    )


def candidates(request):
    return candidate_question(request, SearchOptions(), BodyForm())


def alternatives(request):
    """The question for alternatives, of which the request is the last."""
    return alternatives_question({"a": EASY, "b": request}, SearchOptions())


def placing(request):
    """Where does a consumer go, the request an alternative of the last one?"""
    wanted = [
        PlacingRequest(some, (consumer,), "p", "u", "t")
        for consumer, some in (("a", (EASY,)), ("b", (EASY, request)))
    ]
    return placing_question(Placing(tuple(wanted), (), partial=False), {})


def capacity(request):
    """The question how often a request fits, beside another request."""
    return capacity_question({"a": EASY, "b": request}, CapacityLimits(None, 1))


every_kind = pytest.mark.parametrize("question", [candidates, alternatives, placing, capacity])


@every_kind
def test_request_with_many_groups_goes_to_a_child(question):
    assert question(groups(MANY)).is_hard
    assert not question(groups(MANY - 1)).is_hard


@every_kind
def test_request_with_split_amounts_goes_to_a_child(question):
    divided = CandidateRequest((RequestGroup("", {"VCPU": 1}),), can_split=frozenset({"VCPU"}))
    assert question(divided).is_hard


def test_explanation_goes_to_a_child():
    assert explain_question(EASY, Focus()).is_hard
