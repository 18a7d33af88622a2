# SPDX-License-Identifier: Apache-2.0
"""Counting ends in time, with the count so far (contract page 98, section 5)."""

import json
import time

import pytest

from tests.forest.building import EndingBudget, forest_of, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.request import CandidateRequest, RequestGroup
from treeclaim.replica.questions import capacity_question

TREES = 300
WANTED = CandidateRequest((RequestGroup("", {"VCPU": 1, "MEMORY_MB": 1}),))
"""Each tree has several providers of both classes, so that consumers have to be placed to count."""

OVER = 0.0
"""On the monotonic clock: long ago."""


@pytest.fixture(scope="module")
def forest():
    """Trees of three providers, no two of them alike."""
    records = []
    for tree in range(TREES):
        root = 3 * tree + 1
        records.append(record(root))
        for below in (1, 2):
            amounts = {"VCPU": 5 + tree, "MEMORY_MB": 7 + 2 * tree + below}
            records.append(record(root + below, root, root, amounts))
    return forest_of(records)


def make_limits(end, **how):
    return CapacityLimits((), 10, end, **how)


def test_count_without_time_is_zero_and_incomplete(forest):
    result = count_capacity(forest, WANTED, make_limits(OVER), Budget())
    assert result == {
        "fits": 0,
        "at_most": None,
        "when_empty": 0,
        "domains": [],
        "complete": False,
    }


@pytest.mark.slow
def test_count_cut_short_returns_a_partial_result(forest):
    whole = count_capacity(forest, WANTED, make_limits(None), Budget())
    assert whole["complete"]
    forest.cache.clear()
    partial = []
    for checks in range(3000):
        result = count_capacity(
            forest, WANTED, make_limits(time.monotonic() + 3600), EndingBudget(checks)
        )
        if result["complete"]:
            break
        assert forest.cache.find(("counts", WANTED)) is None
        assert result["at_most"] is None or whole["fits"] <= result["at_most"]
        assert result["when_empty"] <= whole["when_empty"]
        partial.append(result["fits"])
    assert partial == sorted(partial)
    assert partial[0] < whole["fits"] == result["fits"]
    assert set(partial) - {0, whole["fits"]}


def test_operator_timeout_ends_a_count_without_its_own_limit(forest):
    forest.cache.clear()
    with pytest.raises(SearchGivenUpError):
        count_capacity(forest, WANTED, make_limits(None), EndingBudget(20, everywhere=True))


def test_each_request_of_a_call_gets_its_share_of_the_time(forest):
    requests = {f"flavor-{number}": WANTED for number in range(20)}
    forest.cache.clear()
    question = capacity_question(requests, CapacityLimits(None, 0, time.monotonic() + 0.2))
    capacity = json.loads(b"".join(map(bytes, question.work(forest, iter(()), Budget(3600)))))[
        "capacity"
    ]
    assert set(capacity) == set(requests)
    for numbers in capacity.values():
        assert numbers["at_most"] is None or numbers["at_most"] >= numbers["fits"]
    shared = CapacityLimits(None, 0, time.monotonic() + 100).share(4)
    assert shared.end - time.monotonic() < 26
