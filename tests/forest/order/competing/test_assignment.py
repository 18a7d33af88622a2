# SPDX-License-Identifier: Apache-2.0
"""Potentials prove how much the best assignment is worth."""

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from treeclaim.forest.order.competing.assignment import potentials

FORBIDDEN = None


@st.composite
def tables(draw):
    """What columns are worth to rows; some are forbidden."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    worth = st.one_of(st.integers(-4, 4), st.just(FORBIDDEN))
    return draw(
        st.lists(st.lists(worth, min_size=columns, max_size=columns), min_size=rows, max_size=rows)
    )


def best(table):
    """The worth of the best assignment, None if there is none."""
    return max(
        (
            sum(row[column] for row, column in zip(table, columns, strict=True))
            for columns in permutations(range(len(table[0])), len(table))
            if all(
                row[column] is not FORBIDDEN for row, column in zip(table, columns, strict=True)
            )
        ),
        default=None,
    )


@settings(max_examples=200, deadline=None)
@given(tables())
def test_claims_and_prices_are_above_every_worth_and_equal_the_best_assignment(table):
    allowed = np.array([[worth is not FORBIDDEN for worth in row] for row in table])
    worth = np.array([[worth or 0 for worth in row] for row in table], dtype=np.int64)
    found = potentials(worth, allowed, lambda: None)
    assert (None if found is None else found.claims.sum() + found.prices.sum()) == best(table)
    if found is not None:
        assert (found.prices >= 0).all()
        assert (found.claims[:, None] + found.prices >= worth)[allowed].all()
