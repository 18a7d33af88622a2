# SPDX-License-Identifier: Apache-2.0
"""Counts of requests in trees (contract page 101, definitions)."""

import pytest

from tests.forest.building import forest_of, record
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.order.mixes.request_counts import RequestCounts
from treeclaim.forest.order.mixes.tree_counter import TreeCounter
from treeclaim.model.request import CandidateRequest, RequestGroup, ValueList

GROUPS = (RequestGroup("_X", {"VCPU": 1}), RequestGroup("_Y", {"MEMORY_MB": 2}))


@pytest.mark.parametrize("is_same", [True, False])
def test_compared_attributes_do_not_limit_a_count(is_same):
    forest = forest_of([record(1, inventories={"VCPU": (8, 0), "MEMORY_MB": (8, 0)})])
    compared = ValueList("driver", ("_X", "_Y"), is_same)
    request = CandidateRequest(GROUPS, values=(compared,))
    counter = TreeCounter(forest, [RequestCounts(forest, request, Budget())])
    assert counter.in_trees(forest).tolist() == [[4]]
