# SPDX-License-Identifier: Apache-2.0
"""The one cache of the Forest stays within its bytes, keys included, and forgets what is used least."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from treeclaim.forest.bounds import cache
from treeclaim.forest.bounds.cache import ByteCache, size_of

MOST = 20_000


@dataclass(frozen=True)
class Value:
    """Takes so many bytes."""

    nbytes: int


KEYS = st.one_of(st.integers(0, 9), st.text(max_size=300), st.tuples(st.text(max_size=300)))
STEPS = st.tuples(st.sampled_from(["keep", "forget", "find"]), KEYS, st.integers(0, 6_000))


@given(st.lists(STEPS, max_size=60))
def test_values_and_keys_take_no_more_than_is_allowed_and_the_latest_stay(steps):
    kept, latest = ByteCache(MOST), []
    for name, key, size in steps:
        if name == "keep":
            kept.keep(key, Value(size))
        elif name == "forget":
            kept.forget(key)
            latest = [one for one in latest if one != key]
        found = kept.find(key)
        assert name != "forget" or found is None
        if found is not None:
            latest = [key, *(one for one in latest if one != key)]
        sizes = {one: kept._values[one][0].nbytes for one in latest if one in kept._values}
        costs = {one: size + size_of(one) + cache._OVERHEAD for one, size in sizes.items()}
        assert sum(costs.values()) == kept._bytes <= MOST
        # What is there is what was used last.
        assert latest[: len(costs)] == list(costs)
        latest = list(costs)
