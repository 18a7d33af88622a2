# SPDX-License-Identifier: Apache-2.0
"""Divisions compared with all vectors of parts (contract page 97, section 2.2)."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from treeclaim.forest.split.divisions import Offer, even, is_viable, minimal_sets, pack


@st.composite
def offers(draw):
    """A step, and up to six offers with it."""
    step = draw(st.sampled_from([1, 1, 2, 3]))
    bounds = st.tuples(st.integers(0, 5), st.integers(1, 9))
    drawn = [
        Offer.of(at, (step * least, step * most), step)
        for at, (least, most) in enumerate(draw(st.lists(bounds, max_size=6)))
    ]
    return step, tuple(offer for offer in drawn if offer is not None)


def vectors(offers, step, amount):
    """All vectors of parts that sum to an amount."""
    choices = [range(offer.least, offer.most + 1, step) for offer in offers]
    return [vector for vector in itertools.product(*choices) if sum(vector) == amount]


def filled_up(offers, step, amount):
    """The least parts, grown step by step, the smallest that can grow first."""
    vector = [offer.least for offer in offers]
    while sum(vector) < amount:
        growing = [at for at, offer in enumerate(offers) if vector[at] < offer.most]
        vector[min(growing, key=lambda at: vector[at])] += step
    return tuple(vector)


@given(offers(), st.integers(1, 12))
def test_minimal_sets_contain_no_smaller_viable_set(stepped, steps):
    step, all_offers = stepped
    amount = step * steps
    viable = [
        subset
        for size in range(1, len(all_offers) + 1)
        for subset in itertools.combinations(all_offers, size)
        if vectors(subset, step, amount)
    ]
    minimal = [
        viable_set
        for viable_set in viable
        if not any(set(smaller) < set(viable_set) for smaller in viable)
    ]
    result = list(minimal_sets(all_offers, amount))
    assert sorted(result, key=str) == sorted(minimal, key=str)
    assert [len(viable_set) for viable_set in result] == sorted(
        len(viable_set) for viable_set in result
    )


@given(offers(), st.integers(1, 12))
def test_viable_set_is_divided_by_the_policy(stepped, steps):
    step, all_offers = stepped
    amount = step * steps
    possible = vectors(all_offers, step, amount)
    assert is_viable(all_offers, amount) == bool(possible)
    if possible:
        assert pack(all_offers, amount, step) == max(possible)
        assert even(all_offers, amount, step) == filled_up(all_offers, step, amount)


def test_large_amounts_are_divided_without_enumeration():
    hosts = tuple(Offer(position, 1, 300_000 + position) for position in range(16))
    first = next(minimal_sets(hosts, 2_000_000))
    assert len(first) == 7
    assert sum(even(first, 2_000_000, 1)) == sum(pack(first, 2_000_000, 1)) == 2_000_000
    lopsided = (Offer(0, 1, 1_000), Offer(1, 1, 10**9))
    assert even(lopsided, 10**6, 1) == (1_000, 999_000)


def test_supersets_of_viable_sets_are_not_searched():
    hosts = tuple(Offer(position, 1, 1) for position in range(64))
    assert sum(1 for _ in minimal_sets(hosts, 2)) == 64 * 63 // 2
