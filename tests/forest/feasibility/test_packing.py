# SPDX-License-Identifier: Apache-2.0
"""Packing against trying everything, and searches that would be hopeless without it."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forest.building import answer_of, forest_of, record, wide_trees
from tests.machine import slowness
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import UNBOUNDED
from treeclaim.forest.feasibility import bin_packing
from treeclaim.forest.feasibility.bin_packing import Bin, Kind, packable
from treeclaim.model.errors import SearchGivenUpError
from treeclaim.model.inventory import Inventory
from treeclaim.model.request import CandidateRequest, RequestGroup, SearchOptions

SECONDS = 1.0
SLACK = 2.0


@st.composite
def puzzles(draw):
    """Up to five takers of up to four kinds, and up to four places."""
    classes = draw(st.integers(1, 2))
    amounts = st.tuples(*[st.integers(0, 4)] * classes)
    kinds = draw(
        st.lists(
            st.builds(Kind, st.integers(1, 3), amounts, st.booleans()), max_size=4, min_size=1
        )
    )
    serves = st.tuples(*[st.booleans()] * len(kinds))
    rooms = st.tuples(*[st.integers(-1, 6)] * classes)
    places = draw(st.lists(st.builds(Bin, rooms, serves), max_size=3))
    return tuple(kinds), tuple(sorted(places))


def fits(kinds, places):
    """Try everything."""
    items = [kind for kind, one in enumerate(kinds) for _ in range(one.items)]
    return any(
        all(serves_all(kinds, place, mine) for place, mine in zip(places, by_place, strict=True))
        for chosen in itertools.product(range(len(places)), repeat=len(items))
        for by_place in [
            [
                [kind for kind, at in zip(items, chosen, strict=True) if at == number]
                for number in range(len(places))
            ]
        ]
    )


def serves_all(kinds, place, mine):
    """Tell whether a place can serve some takers, given as numbers of their kinds, at once."""
    alone = sum(kinds[one].is_alone for one in mine)
    needed = [sum(kinds[one].amounts[number] for one in mine) for number in range(len(place.room))]
    return (
        alone <= 1
        and all(place.serves[one] for one in mine)
        and all(want <= have or not want for want, have in zip(needed, place.room, strict=True))
    )


@given(puzzles())
def test_packing_agrees_with_trying_everything(puzzle):
    kinds, places = puzzle
    if sum(one.items for one in kinds) <= 6:
        assert packable(kinds, places) == fits(kinds, places)


@given(puzzles())
def test_what_is_served_greedily_can_be_served(puzzle):
    kinds, places = puzzle
    if sum(one.items for one in kinds) <= 6 and bin_packing.greedy(kinds, places):
        assert fits(kinds, places)


@given(puzzles())
def test_too_little_work_allowed_is_never_too_strict(puzzle):
    kinds, places = puzzle
    if sum(one.items for one in kinds) <= 6 and fits(kinds, places):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(thresholds, "MOST_FILLINGS", 2)
            patch.setattr(thresholds, "MOST_PACKING_STATES", (4, 2))
            assert bin_packing._judged(kinds, places, UNBOUNDED)


@given(puzzles())
def test_taking_nearly_alike_takers_for_alike_is_never_too_strict(puzzle):
    kinds, places = puzzle
    if sum(one.items for one in kinds) <= 6 and fits(kinds, places):
        for most in (1, 4, 10):
            coarse, merged = bin_packing._merged(kinds, places, most)
            assert sum(one.items for one in coarse) == sum(one.items for one in kinds)
            assert packable(coarse, merged)


def question(amounts, limit=10):
    """A request with a group for each amount of one class."""
    groups = tuple(
        RequestGroup(f"_{number}", {"CUSTOM_DEVICE": amount})
        for number, amount in enumerate(amounts)
    )
    return CandidateRequest(groups, limit=limit)


@pytest.mark.parametrize(
    ("places", "room", "amounts"),
    [
        (21, 10, [7] * 12 + [6] * 12 + [4] * 12),
        (24, 60, list(range(21, 29)) * 8),
        (24, 100, [51] * 16 + [26, 27, 28, 29] * 12),
    ],
)
def test_many_takers_of_several_sizes_that_do_not_pack_are_known_at_once(places, room, amounts):
    forest = forest_of(wide_trees(2, places, room))
    options = SearchOptions(seconds=SECONDS)
    assert answer_of(forest, question(amounts), options)["allocation_requests"] == []


def test_an_easy_question_to_many_different_places_is_answered():
    """Each child could serve all groups; there are very many ways to fill each of them."""
    children = [record(n, 1, 1, {"CUSTOM_DEVICE": 1000 + n}) for n in range(2, 202)]
    forest = forest_of([record(1), *children])
    answer = answer_of(forest, question(range(10, 24)), SearchOptions(seconds=SECONDS))
    assert len(answer["allocation_requests"]) == 10


@pytest.mark.slow
def test_what_is_too_much_to_find_out_is_given_up_in_time():
    # Sixty sizes, and hardly any room to spare: beyond what is judged exactly.
    amounts = [200 + (number * 7919) % 700 for number in range(60)]
    forest = forest_of(wide_trees(2, 33, 1000))
    begin = time.process_time()
    with pytest.raises(SearchGivenUpError):
        answer_of(forest, question(amounts), SearchOptions(seconds=SECONDS))
    assert time.process_time() - begin < SECONDS + SLACK * slowness()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"randomize": True}, {"breadth_first": True}, {}])
def test_more_candidates_than_anybody_waits_for_are_given_up_in_time(options):
    forest = forest_of(wide_trees(1, 40, 100))
    begin = time.process_time()
    with pytest.raises(SearchGivenUpError):
        answer_of(
            forest, question([1] * 12, limit=None), SearchOptions(seconds=SECONDS, **options)
        )
    assert time.process_time() - begin < SECONDS + SLACK * slowness()


@pytest.mark.slow
def test_an_amount_that_nothing_sums_to_is_given_up_in_time():
    # Each child gives all it has or nothing: which of them sum to the amount is a hard question.
    records = [record(1)]
    for number in range(2, 42):
        units = 100_001 + number * number * 6
        whole = Inventory(total=units, min_unit=units, max_unit=units)
        records.append(record(number, 1, 1, {"CUSTOM_DEVICE": whole}))
    group = RequestGroup("", {"CUSTOM_DEVICE": 2_050_001})
    request = CandidateRequest((group,), can_split=frozenset({"CUSTOM_DEVICE"}), limit=10)
    begin = time.process_time()
    with pytest.raises(SearchGivenUpError):
        answer_of(forest_of(records), request, SearchOptions(seconds=SECONDS))
    assert time.process_time() - begin < SECONDS + SLACK * slowness()
