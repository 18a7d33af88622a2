# SPDX-License-Identifier: Apache-2.0
"""Who comes to candidates and makes them fullest, or emptiest, is found as if all ways were tried."""

import random
from itertools import combinations

import numpy as np
import pytest

from treeclaim.forest.order.terms import added
from treeclaim.forest.order.terms.added import Added

UNIT = 2
WHO = 6


def asked(draw):
    """Some candidates to which some may come, of whom each serves a group at least."""
    count = draw.randint(1, 4)
    most = draw.randint(1, WHO)
    room = np.array([draw.randint(1, 4) * UNIT for _ in range(WHO)], dtype=np.float64)
    may = np.array([[draw.random() < 0.8 for _ in range(WHO)] for _ in range(count)])
    missing = np.array([draw.randint(0, most) * UNIT for _ in range(count)], dtype=np.float64)
    capacity = np.array([draw.randint(10, 99) for _ in range(WHO)], dtype=np.float64)
    return Added(
        before=(
            np.array([float(draw.randint(0, 20)) for _ in range(count)]),
            np.array([float(draw.randint(20, 90)) for _ in range(count)]),
        ),
        used=capacity - room - draw.randint(0, 4),
        capacity=capacity,
        room=room,
        unit=UNIT,
        may=may,
        fewest=(missing > 0).astype(np.int64),
        most=np.full(count, most),
        missing=missing,
    )


def shares(some, candidate):
    """The shares of a candidate with all who may come together."""
    for count in range(int(some.most[candidate]) + 1):
        for who in map(list, combinations(np.flatnonzero(some.may[candidate]), count)):
            if some.room[who].sum() >= some.missing[candidate]:
                used, capacity = (values[candidate] for values in some.before)
                yield (used + some.used[who].sum()) / (capacity + some.capacity[who].sum())


@pytest.mark.parametrize("seed", range(200))
def test_where_groups_are_alike_the_share_is_attained(seed):
    some = asked(random.Random(seed))
    greatest, least = some.share(is_greatest=True), some.share(is_greatest=False)
    for candidate in range(len(some.may)):
        every = list(shares(some, candidate))
        if every:
            assert greatest[candidate] == max(every)
            assert least[candidate] == min(every)


@pytest.mark.parametrize("seed", range(50))
def test_where_what_is_missing_is_rounded_no_share_is_beyond(seed, monkeypatch):
    monkeypatch.setattr(added, "_MOST_SUMS", 0)
    some = asked(random.Random(seed))
    greatest, least = some.share(is_greatest=True), some.share(is_greatest=False)
    for candidate in range(len(some.may)):
        for share in shares(some, candidate):
            assert least[candidate] <= share <= greatest[candidate]
