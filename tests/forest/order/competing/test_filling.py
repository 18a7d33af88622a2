# SPDX-License-Identifier: Apache-2.0
"""What providers are worth together is what the best of all ways to fill them is worth."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from treeclaim.forest.order.competing.filling import (
    ABOVE,
    NEVER,
    FillingByPairs,
    pairs_of,
    states_of,
)
from treeclaim.forest.order.competing.one_by_one import FillingOneByOne


@st.composite
def fillings(draw):
    """Numbers of two kinds, and what some providers are worth that serve them."""
    numbers = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    states = states_of(numbers)
    worth = st.one_of(st.integers(-5, 5), st.just(NEVER))
    row = st.lists(worth, min_size=len(states.counts), max_size=len(states.counts))
    rows = draw(st.lists(row, min_size=1, max_size=4))
    for some in rows:
        # Who serves nothing more is worth something.
        some[0] = max(some[0], 0)
    return states, np.array(rows, dtype=np.int64)


def all_ways(states, worth):
    """All ways to serve everybody: the numbers of the states that providers serve, and their worth."""
    for chosen in product(range(len(states.counts)), repeat=len(worth)):
        if (states.counts[list(chosen)].sum(axis=0) == states.counts[-1]).all():
            worths = [int(worth[at, state]) for at, state in enumerate(chosen)]
            if NEVER not in worths:
                yield chosen, sum(worths)


@settings(max_examples=60, deadline=None)
@given(fillings(), st.data())
def test_the_most_is_that_of_all_ways(filling, data):
    states, worth = filling
    hot = states.counts[:, 0] > 0
    flags = st.lists(st.booleans(), min_size=len(worth), max_size=len(worth))
    inside = np.array(data.draw(flags))
    begun = inside & np.array(data.draw(flags))
    branch = np.sort(data.draw(st.permutations([ABOVE, 1, 1, 2])))[: len(worth)]
    made = FillingByPairs(states, worth, lambda: None)
    ways = list(all_ways(states, worth))
    assert made.most() == max((value for _, value in ways), default=NEVER)
    kept = [
        (chosen, value)
        for chosen, value in ways
        if all(inside[at] or not hot[state] for at, state in enumerate(chosen))
    ]
    assert made.most(hot, inside) == max((value for _, value in kept), default=NEVER)
    apart = []
    for chosen, value in kept:
        used = {int(branch[at]) for at, state in enumerate(chosen) if hot[state] or begun[at]}
        if ABOVE in used or len(used) > 1:
            apart.append(value)
    assert made.most_apart(hot, inside, begun, branch) == max(apart, default=NEVER)


def test_pairs_of_states_are_counted_before_they_are_made():
    for numbers in [(3,), (1, 2), (1, 1, 1), (0, 4)]:
        assert pairs_of(numbers) == len(states_of(numbers).taken)


@st.composite
def fillings_of_wants(draw):
    """Numbers of three kinds, two of which want the same; what three providers are worth that serve them."""
    numbers = tuple(draw(st.tuples(*[st.integers(0, 2)] * 3)))
    wants = (0, 1, 0)
    ways = states_of((numbers[0] + numbers[2], numbers[1])).counts
    rooms = draw(st.lists(st.integers(0, 4), min_size=3, max_size=3))
    worth = np.array(
        [
            [draw(st.integers(-9, 9)) if sum(way) <= room else NEVER for way in ways]
            for room in rooms
        ]
    )
    gains = np.array(draw(st.lists(st.sampled_from([NEVER, 0, 1, 4]), min_size=9, max_size=9)))
    return numbers, wants, ways, worth, gains.reshape(3, 3)


@settings(max_examples=60, deadline=None)
@given(fillings_of_wants())
def test_to_serve_one_after_the_other_is_to_try_all_pairs(filling):
    """Also where one provider is worth something else."""
    numbers, wants, ways, worth, gains = filling
    states = states_of(numbers)
    served = states.counts @ np.array([[1, 0], [0, 1], [1, 0]])
    way = [ways.tolist().index(one) for one in served.tolist()]
    able = ((gains.T[:, None, :] > NEVER) | (states.counts == 0)).all(axis=2)
    gained = (np.maximum(gains, -99).T[:, None, :] * states.counts).sum(axis=2)

    def of_states(worth):
        return np.where(able & (worth[:, way] > NEVER), worth[:, way] + gained, NEVER)

    instead = np.where(worth > NEVER, worth + np.arange(3)[:, None], NEVER)
    pairs = FillingByPairs(states, of_states(worth), lambda: None)
    ones = FillingOneByOne(numbers, wants, worth, gains, lambda: None)
    assert ones.most() == pairs.most()
    assert (ones.most_instead(instead) == pairs.most_instead(of_states(instead))).all()
    for at in range(3):
        changed = worth.copy()
        changed[at] = instead[at]
        alone = FillingByPairs(states, of_states(changed), lambda: None).most()
        assert pairs.most_instead(of_states(instead))[at] == alone
