# SPDX-License-Identifier: Apache-2.0
"""A candidate of sharing providers alone is given once, however many trees it can be found under."""

from dataclasses import replace

import pytest

from tests.forest.building import answer_of, distinct, forest_of, record
from treeclaim.model.names import SHARING_TRAIT
from treeclaim.model.request import (
    CandidateRequest,
    Order,
    RequestGroup,
    SearchOptions,
    Term,
    TermName,
)

RACK = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize("limit", [None, 1, 2, 3, 100])
@pytest.mark.parametrize("host_count", [1, 16, 40, 300])
@pytest.mark.parametrize("pool_count", [1, 2, 3])
def test_pools_of_many_hosts_are_ordered_once(pool_count, host_count, limit):
    records = [
        record(number, inventories={"VCPU": 8}, aggregates=(RACK,))
        for number in range(1, host_count + 1)
    ]
    records += [
        record(
            1000 + number,
            inventories={"DISK_GB": (100, 10 * number)},
            traits=[SHARING_TRAIT],
            aggregates=(RACK,),
        )
        for number in range(pool_count)
    ]
    forest = forest_of(records)
    request = CandidateRequest((RequestGroup("", {"DISK_GB": 1}),), limit=limit)
    for options in (
        SearchOptions(),
        SearchOptions(breadth_first=True),
        SearchOptions(randomize=True),
    ):
        answer = answer_of(forest, request, options)
        assert len(distinct(answer)) == min(pool_count, limit or pool_count)
        assert len(answer["allocation_requests"]) == len(distinct(answer))
    answer = answer_of(forest, replace(request, order=Order((Term(TermName.SPREAD_PROVIDERS),))))
    assert answer["scores"] == [0.99, 0.89, 0.79][:pool_count][:limit]
    assert len(distinct(answer)) == len(answer["scores"])
