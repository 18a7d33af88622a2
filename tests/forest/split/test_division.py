# SPDX-License-Identifier: Apache-2.0
"""Divisions against all vectors of parts there are (contract page 97, section 2, `can_split`)."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.machine import slowness
from treeclaim.forest.bounds import thresholds
from treeclaim.forest.bounds.budget import Budget
from treeclaim.forest.split.division import even, pack
from treeclaim.forest.split.minimal_sets import minimal_sets
from treeclaim.forest.split.offers import Offer, is_viable, reaches

steps = st.sampled_from([1, 1, 2, 3, 4])


@st.composite
def offers(draw):
    """Up to six offers, mostly with the same step."""
    common = draw(steps)
    made = []
    for position in range(draw(st.integers(1, 6))):
        step = draw(st.one_of(st.just(common), steps))
        bounds = draw(st.integers(0, 5)), draw(st.integers(1, 9))
        made.append(Offer.of(position, bounds, step))
    return tuple(one for one in made if one is not None)


def vectors(some, amount):
    """All vectors of parts that sum to an amount."""
    choices = [range(one.least, one.most + 1, one.step) for one in some]
    return [one for one in itertools.product(*choices) if sum(one) == amount]


@given(offers(), st.integers(1, 30))
def test_the_minimal_sets_are_the_viable_ones_without_a_smaller_one(some, amount):
    viable = [
        subset
        for size in range(1, len(some) + 1)
        for subset in itertools.combinations(some, size)
        if vectors(subset, amount)
    ]
    minimal = [one for one in viable if not any(set(other) < set(one) for other in viable)]
    found = list(minimal_sets(some, amount))
    assert sorted(found, key=str) == sorted(minimal, key=str)
    assert [len(one) for one in found] == sorted(len(one) for one in found)


@given(offers(), st.integers(1, 30))
def test_a_viable_set_is_divided_as_the_policy_says(some, amount):
    possible = vectors(some, amount)
    assert is_viable(some, amount) == bool(possible or (not some and amount == 0))
    if possible:
        assert pack(some, amount) == max(possible)
        assert even(some, amount) == max(
            possible, key=lambda vector: (min(vector) - max(vector), vector)
        )


def offered(*ranges):
    """Offers from the least to the most, in steps."""
    return tuple(Offer(at, *bounds) for at, bounds in enumerate(ranges))


@pytest.mark.parametrize(
    ("ranges", "amount", "expected"),
    [
        # Windows of the same width begin at 5 and at 4: the lower one has the greater vector.
        ([(5, 9, 1), (3, 7, 1), (4, 8, 4)], 18, (7, 7, 4)),
        ([(4, 8, 4), (4, 9, 1), (4, 7, 1)], 18, (8, 5, 5)),
        ([(5, 10, 1), (2, 12, 2), (1, 2, 1)], 10, (6, 2, 2)),
        ([(3, 9, 3), (6, 10, 1), (5, 7, 1), (1, 3, 1)], 19, (6, 6, 5, 2)),
        # The smallest part cannot be what the mean would be.
        ([(2, 10, 2), (1, 7, 1)], 3, (2, 1)),
        ([(1, 4, 1), (4, 8, 4)], 9, (1, 8)),
    ],
)
def test_of_all_narrowest_windows_that_with_the_greatest_vector_is_taken(ranges, amount, expected):
    some = offered(*ranges)
    assert max(vectors(some, amount), key=lambda it: (min(it) - max(it), it)) == expected
    assert even(some, amount) == expected


@pytest.mark.parametrize(
    ("ranges", "amount", "expected"),
    [
        # What is too much is just what the smallest of them gives.
        ([(1, 2, 1), (1, 3, 1)], 3, [(1,)]),
        ([(1, 2, 1), (1, 3, 1), (1, 4, 1)], 7, [(1, 2)]),
        # One less is too much for nobody.
        ([(1, 2, 1), (1, 3, 1)], 4, [(0, 1)]),
        # Without the smallest one the others have to give too much.
        ([(1, 2, 1), (3, 3, 1)], 2, [(0,)]),
        # With steps that differ.
        ([(2, 2, 2), (3, 6, 3)], 6, [(1,)]),
        ([(2, 2, 2), (3, 6, 3)], 5, [(0, 1)]),
    ],
)
def test_a_set_is_minimal_if_all_of_it_is_needed(ranges, amount, expected):
    found = minimal_sets(offered(*ranges), amount)
    assert [tuple(offer.position for offer in members) for members in found] == expected


def test_large_amounts_are_divided_without_trying_them_all():
    hosts = tuple(Offer(position, 1, 300_000 + position, 1) for position in range(16))
    first = next(minimal_sets(hosts, 2_000_000))
    assert len(first) == 7
    assert sum(even(first, 2_000_000)) == sum(pack(first, 2_000_000)) == 2_000_000
    lopsided = (Offer(0, 1, 1_000, 1), Offer(1, 1, 10**9, 1))
    assert even(lopsided, 10**6) == (1_000, 999_000)


def test_sets_that_hold_a_smaller_one_are_not_searched_to_the_end():
    many = tuple(Offer(position, 1, 1, 1) for position in range(64))
    assert sum(1 for _ in minimal_sets(many, 2)) == 64 * 63 // 2


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 12)), max_size=4),
    st.integers(-3, 400),
    st.sampled_from([(2**18, 2**23, 0), (3, 2**23, 0), (0, 2, 0), (6, 2, 0), (6, 2, 1000)]),
)
def test_sums_of_multiples_are_found_by_each_method_as_by_trying(terms, rest, bounds):
    terms = list(dict(terms).items())
    ranges = [range(0, step * times + 1, step) for step, times in terms]
    expected = any(sum(one) == rest for one in itertools.product(*ranges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "MOST_REMAINDERS", bounds[0])
        patch.setattr(thresholds, "MOST_SUM_BITS", bounds[1])
        patch.setattr(thresholds, "FEW_TRIES", bounds[2])
        assert reaches(terms, rest, lambda: None) == expected


COPRIME = (10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "amount", "divide"),
    [(5000, 100_000_003, even), (5000, 100_000_003, pack), (40_000, 1_234_567_891, pack)],
)
def test_large_steps_without_a_common_divisor_are_divided_soon(times, amount, divide):
    offers = tuple(
        Offer(position, step, step * times, step) for position, step in enumerate(COPRIME)
    )
    begin = time.process_time()
    first = next(minimal_sets(offers, amount))
    assert sum(divide(first, amount)) == amount
    assert time.process_time() - begin < 10 * slowness()


def test_the_memory_of_minimal_sets_is_given_back_at_their_end():
    offers = [Offer(at, step, 6 * step, step) for at, step in enumerate([2, 3, 5, 2, 3])]
    count = len(list(minimal_sets(offers, 15)))
    assert count > 1
    budget = Budget(most_bytes=count * 100)
    for _ in range(3):
        assert len(list(minimal_sets(offers, 15, budget))) == count
