# SPDX-License-Identifier: Apache-2.0
"""Large amounts are divided without enumeration; the properties compare small ones with the reference."""

from treeclaim.forest.split.division import Offer, even, pack
from treeclaim.forest.split.minimal_sets import minimal_sets


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
