# SPDX-License-Identifier: Apache-2.0
"""Divisions against all vectors of parts there are (contract page 97, section 2.2)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forest.building import answer_of, forest_of, provider_uuid, record
from treeclaim.forest.split.division import Offer, even, is_viable, pack
from treeclaim.forest.split.minimal_sets import minimal_sets
from treeclaim.model.inventory import Inventory
from treeclaim.model.request import CandidateRequest, RequestGroup, SplitPolicy


@st.composite
def offers(draw):
    """A step, and up to six offers with it."""
    step = draw(st.sampled_from([1, 1, 2, 3]))
    bounds = st.tuples(st.integers(0, 5), st.integers(1, 9))
    made = [
        Offer.of(at, (step * least, step * most), step)
        for at, (least, most) in enumerate(draw(st.lists(bounds, max_size=6)))
    ]
    return step, tuple(offer for offer in made if offer is not None)


def vectors(some, step, amount):
    """All vectors of parts that sum to an amount."""
    choices = [range(offer.least, offer.most + 1, step) for offer in some]
    return [vector for vector in itertools.product(*choices) if sum(vector) == amount]


def filled_up(some, step, amount):
    """The least parts, of which the smallest that can grow grows step by step."""
    vector = [offer.least for offer in some]
    while sum(vector) < amount:
        growing = [at for at, offer in enumerate(some) if vector[at] < offer.most]
        vector[min(growing, key=lambda at: vector[at])] += step
    return tuple(vector)


@given(offers(), st.integers(1, 12))
def test_minimal_sets_contain_no_smaller_viable_set(stepped, steps):
    step, some = stepped
    amount = step * steps
    viable = [
        subset
        for size in range(1, len(some) + 1)
        for subset in itertools.combinations(some, size)
        if vectors(subset, step, amount)
    ]
    minimal = [one for one in viable if not any(set(other) < set(one) for other in viable)]
    result = list(minimal_sets(some, amount))
    assert sorted(result, key=str) == sorted(minimal, key=str)
    assert [len(one) for one in result] == sorted(len(one) for one in result)


@given(offers(), st.integers(1, 12))
def test_viable_set_is_divided_by_the_policy(stepped, steps):
    step, some = stepped
    amount = step * steps
    possible = vectors(some, step, amount)
    assert is_viable(some, amount) == bool(possible)
    if possible:
        assert pack(some, amount, step) == max(possible)
        assert even(some, amount, step) == filled_up(some, step, amount)


def offered(*ranges):
    """Offers from the least to the most."""
    return tuple(Offer(at, *bounds) for at, bounds in enumerate(ranges))


@pytest.mark.parametrize(
    ("ranges", "amount", "expected"),
    [
        # What is too much is just what the smallest of them gives.
        ([(1, 2), (1, 3)], 3, [(1,)]),
        ([(1, 2), (1, 3), (1, 4)], 7, [(1, 2)]),
        # One less is too much for none.
        ([(1, 2), (1, 3)], 4, [(0, 1)]),
        # Without the smallest one the others have to give too much.
        ([(1, 2), (3, 3)], 2, [(0,)]),
    ],
)
def test_set_is_minimal_if_every_member_is_needed(ranges, amount, expected):
    result = minimal_sets(offered(*ranges), amount)
    assert [tuple(offer.position for offer in members) for members in result] == expected


def test_large_amounts_are_divided_without_enumeration():
    hosts = tuple(Offer(position, 1, 300_000 + position) for position in range(16))
    first = next(minimal_sets(hosts, 2_000_000))
    assert len(first) == 7
    assert sum(even(first, 2_000_000, 1)) == sum(pack(first, 2_000_000, 1)) == 2_000_000
    lopsided = (Offer(0, 1, 1_000), Offer(1, 1, 10**9))
    assert even(lopsided, 10**6, 1) == (1_000, 999_000)


def test_supersets_of_viable_sets_are_not_searched():
    many = tuple(Offer(position, 1, 1) for position in range(64))
    assert sum(1 for _ in minimal_sets(many, 2)) == 64 * 63 // 2


def parts_of(amount, steps, policy=SplitPolicy.PACK):
    """The parts of each candidate that divides an amount over devices with some steps."""
    records = [record(1)]
    records += [
        record(2 + at, 1, 1, {"CUSTOM_DEVICE": Inventory(total=6 * step, step_size=step)})
        for at, step in enumerate(steps)
    ]
    request = CandidateRequest(
        (RequestGroup("", {"CUSTOM_DEVICE": amount}),),
        can_split=frozenset({"CUSTOM_DEVICE"}),
        split_policy=policy,
    )
    numbers = {provider_uuid(2 + at): at for at in range(len(steps))}
    return [
        {
            numbers[uuid]: given["resources"]["CUSTOM_DEVICE"]
            for uuid, given in candidate["allocations"].items()
        }
        for candidate in answer_of(forest_of(records), request)["allocation_requests"]
    ]


def test_parts_are_multiples_of_the_least_common_multiple_of_all_steps():
    assert parts_of(24, (2, 3)) == [{0: 12, 1: 12}]
    # A single provider needs only its own step.
    assert parts_of(10, (2, 3)) == [{0: 10}]
    assert parts_of(22, (2, 3)) == []


def test_even_fills_the_smallest_part_first():
    assert parts_of(9, (1, 1), SplitPolicy.EVEN) == [{0: 5, 1: 4}]
    assert parts_of(24, (2, 3), SplitPolicy.EVEN) == [{0: 12, 1: 12}]
