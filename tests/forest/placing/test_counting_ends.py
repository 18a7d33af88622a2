# SPDX-License-Identifier: Apache-2.0
"""Counting ends in time, and tells what was counted by then (contract page 98, section 5)."""

import json
import time
from contextlib import contextmanager

import pytest

from tests.forest.building import MeasuringBudget, complete, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.placing.capacity import CapacityLimits, count_capacity
from treeclaim.forest.table.forest import Forest
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.request import CandidateRequest, RequestGroup
from treeclaim.replica.questions import capacity_question

TREES, FEW_TREES = 300, 30
WANTED = CandidateRequest((RequestGroup("", {"VCPU": 1, "MEMORY_MB": 1}),))
"""Each tree has several providers of both classes, so that consumers have to be placed to count."""

OVER = 0.0
"""On the monotonic clock: long ago."""


@pytest.fixture(scope="module")
def forest():
    return forest_of(TREES)


def forest_of(trees):
    """Trees of three providers, no two of them alike."""
    records = []
    for tree in range(trees):
        root = 3 * tree + 1
        records.append(record(root))
        records += [
            record(
                root + below,
                parent=root,
                root=root,
                inventories={"VCPU": 5 + tree, "MEMORY_MB": 7 + 2 * tree + below},
            )
            for below in (1, 2)
        ]
    made = Forest()
    made.apply(complete(records))
    return made


def asked(end, **how):
    return CapacityLimits((), 10, end, **how)


def test_count_without_time_is_zero_and_incomplete(forest):
    result = count_capacity(forest, WANTED, asked(OVER), Budget())
    assert result == {
        "fits": 0,
        "at_most": None,
        "when_empty": 0,
        "domains": [],
        "complete": False,
    }


@pytest.mark.slow
def test_count_cut_short_returns_a_partial_result(forest):
    whole = count_capacity(forest, WANTED, asked(None), Budget())
    assert whole["complete"]
    forest.cache.clear()
    partial = []
    for checks in range(3000):
        result = count_capacity(
            forest, WANTED, asked(time.monotonic() + 3600), EndingBudget(checks)
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
        count_capacity(forest, WANTED, asked(None), EndingBudget(checks=20))


def test_each_request_of_a_call_gets_its_share_of_the_time(forest):
    requests = {f"flavor-{number}": WANTED for number in range(20)}
    forest.cache.clear()
    question = capacity_question(requests, CapacityLimits(None, 0, time.monotonic() + 0.2))
    capacity = json.loads(b"".join(question.work(forest, iter(()), Budget(3600))))["capacity"]
    assert set(capacity) == set(requests)
    for numbers in capacity.values():
        assert numbers["at_most"] is None or numbers["at_most"] >= numbers["fits"]
    shared = CapacityLimits(None, 0, time.monotonic() + 100).share(4)
    assert shared.end - time.monotonic() < 26


@pytest.mark.slow
def test_memory_of_a_request_is_freed_before_the_next():
    forest = forest_of(FEW_TREES)
    needed = least_memory(forest, {"x": WANTED})
    others = {f"x{number}": request(number) for number in range(1, 6)}
    assert least_memory(forest, others) < 3 * needed


def request(amount):
    return CandidateRequest((RequestGroup("", {"VCPU": amount, "MEMORY_MB": 1}),))


def least_memory(forest, requests):
    """The most bytes that counting holds at a time."""
    budget = MeasuringBudget()
    question = capacity_question(requests, CapacityLimits(None, 0))
    b"".join(question.work(forest, iter(()), budget))
    return budget.most


class EndingBudget(Budget):
    """A budget whose time is over after some looks at it: that for counting, if it has one."""

    def __init__(self, checks):
        super().__init__(3600)
        self._left = checks
        self._is_ending = True

    def check(self):
        self._left -= 1
        if self._left < 0 and self._is_ending:
            raise SearchGivenUpError(0)

    @contextmanager
    def ending(self, at):
        self._is_ending = True
        try:
            with super().ending(at):
                yield
        finally:
            self._is_ending = at is None
