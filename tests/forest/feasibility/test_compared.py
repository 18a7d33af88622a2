# SPDX-License-Identifier: Apache-2.0
"""Groups that compete for providers and are compared by attributes: what is left out has no candidate."""

import pytest

from tests.forest.building import LimitedBudget, record
from tests.forest.building import forest_of as forest_of_records
from treeclaim.forest.search import search
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions, ValueList


@pytest.mark.parametrize("is_isolated", [True, False])
@pytest.mark.parametrize(("groups", "is_same"), [(17, True), (9, False)])
def test_infeasible_comparison_is_detected_early(groups, is_same, is_isolated):
    """Two nodes have sixteen devices each, or eight have four: one group too many is seen as that."""
    records: list[ProviderRecord] = []
    nodes, each = (2, 16) if is_same else (8, 4)
    for host in range(3):
        root = host * 100 + 1
        records.append(record(root))
        records += [
            record(
                root + 1 + device,
                root,
                root,
                {"CUSTOM_DEVICE": 1},
                attributes={"node": device % nodes},
            )
            for device in range(nodes * each)
        ]
    suffixes = tuple(f"_{number}" for number in range(groups))
    request = CandidateRequest(
        tuple(RequestGroup(suffix, {"CUSTOM_DEVICE": 1}) for suffix in suffixes),
        isolated=frozenset(suffixes if is_isolated else ()),
        values=(ValueList("node", suffixes, is_same),),
    )
    answer = search(
        forest_of_records(records), request, SearchOptions(), budget=LimitedBudget(20_000)
    )
    assert b'"allocation_requests":[]' in b"".join(answer.pieces()).replace(b" ", b"")
