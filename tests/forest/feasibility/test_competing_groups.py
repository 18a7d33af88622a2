# SPDX-License-Identifier: Apache-2.0
"""Groups that compete for room: what cannot be served is refused, and what is too hard is given up in time."""

import pytest

from tests.forest.building import LimitedBudget, answer_of, forest_of, record, wide_trees
from treeclaim.forest.search import search
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.inventory import Inventory
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions

SECONDS = 1.0


def question(amounts, limit=10):
    """A request with a group for each amount of one class."""
    groups = tuple(
        RequestGroup(f"_{number}", {"CUSTOM_DEVICE": amount})
        for number, amount in enumerate(amounts)
    )
    return CandidateRequest(groups, limit=limit)


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
    forest = forest_of(wide_trees(100, children, room))
    answer = search(forest, question(amounts), SearchOptions(), budget=LimitedBudget(20_000))
    assert b'"allocation_requests":[]' in b"".join(answer.pieces()).replace(b" ", b"")


def test_easy_query_on_many_different_providers_is_answered():
    """Each child could serve all groups; there are very many ways to fill each of them."""
    children = [record(n, 1, 1, {"CUSTOM_DEVICE": 1000 + n}) for n in range(2, 202)]
    forest = forest_of([record(1), *children])
    answer = answer_of(forest, question(range(10, 24)), SearchOptions(seconds=SECONDS))
    assert len(answer["allocation_requests"]) == 10


@pytest.mark.slow
def test_hard_query_times_out():
    # Sixty sizes, and hardly any room to spare: beyond what is judged exactly.
    amounts = [200 + (number * 7919) % 700 for number in range(60)]
    forest = forest_of(wide_trees(2, 33, 1000))
    with pytest.raises(SearchGivenUpError):
        answer_of(forest, question(amounts), SearchOptions(seconds=SECONDS))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"randomize": True}, {"breadth_first": True}, {}])
def test_query_with_too_many_candidates_times_out(options):
    forest = forest_of(wide_trees(1, 40, 100))
    with pytest.raises(SearchGivenUpError):
        answer_of(
            forest, question([1] * 12, limit=None), SearchOptions(seconds=SECONDS, **options)
        )


@pytest.mark.slow
def test_unreachable_split_amount_times_out():
    # Each child gives all it has or nothing: which of them sum to the amount is a hard question.
    records = [record(1)]
    for number in range(2, 42):
        units = 100_001 + number * number * 6
        whole = Inventory(total=units, min_unit=units, max_unit=units)
        records.append(record(number, 1, 1, {"CUSTOM_DEVICE": whole}))
    group = RequestGroup("", {"CUSTOM_DEVICE": 2_050_001})
    request = CandidateRequest((group,), can_split=frozenset({"CUSTOM_DEVICE"}), limit=10)
    with pytest.raises(SearchGivenUpError):
        answer_of(forest_of(records), request, SearchOptions(seconds=SECONDS))
