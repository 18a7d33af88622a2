# SPDX-License-Identifier: Apache-2.0
"""Groups that compete for capacity: infeasible requests are rejected, and hard requests end in time."""

import pytest

from tests.forest.building import EndingBudget, answer_of, forest_of, record, wide_trees
from treeclaim.forest.search import search
from treeclaim.model.provider import ProviderRecord
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions, ValueList

SECONDS = 1.0


def question(amounts, limit=10):
    """A request with a group for each amount of one class."""
    groups = tuple(
        RequestGroup(f"_{number}", {"CUSTOM_DEVICE": amount})
        for number, amount in enumerate(amounts)
    )
    return CandidateRequest(groups, limit=limit)


def assert_refused_early(records, request):
    """Check that a search without candidates needs few checks of its budget."""
    budget = EndingBudget(20_000, everywhere=True)
    answer = search(forest_of(records), request, SearchOptions(), budget=budget)
    assert b'"allocation_requests":[]' in b"".join(answer.pieces()).replace(b" ", b"")


@pytest.mark.parametrize(
    ("children", "room", "amounts"),
    [
        # Interchangeable devices, one too few for as many groups.
        (63, 1, [1] * 64),
        (63, 2, [2] * 64),
        # Up to five unlike amounts that do not fit beside each other.
        (4, 10, [6, 6, 6, 6, 6]),
        (2, 10, [7, 4, 4, 4, 1]),
        (3, 100, [51, 51, 51, 50, 1]),
    ],
)
def test_competing_groups_without_room_are_refused_early(children, room, amounts):
    assert_refused_early(wide_trees(100, children, room), question(amounts))


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
    assert_refused_early(records, request)


def test_easy_query_on_many_different_providers_is_answered():
    """Each child could serve all groups; there are very many ways to fill each of them."""
    children = [record(n, 1, 1, {"CUSTOM_DEVICE": 1000 + n}) for n in range(2, 202)]
    forest = forest_of([record(1), *children])
    answer = answer_of(forest, question(range(10, 24)), SearchOptions(seconds=SECONDS))
    assert len(answer["allocation_requests"]) == 10
